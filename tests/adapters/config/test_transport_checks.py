"""Options of LBT-RM and LBT-RU that do not fit together."""

import pytest

from stablecast.config.option_kinds import Value
from stablecast.config.transport_checks import transport_relations
from stablecast.config.transport_options import split

KINDS = ("lbtrm", "lbtru")
GOOD = {"ignore_interval": 100}
"""The documented default is one that T29 is about."""


def codes(kind: str, **options: Value) -> list[str]:
    named = {f"transport_{kind}_{name}": value for name, value in {**GOOD, **options}.items()}
    config, _ = split({"transport": kind, **named})
    return [code for code, _, _ in transport_relations(config)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_defaults_go_together_but_for_the_ignore_interval(kind: str) -> None:
    """T29."""
    assert codes(kind) == []
    assert codes(kind, ignore_interval=500) == ["ignore-above-backoff"]


@pytest.mark.rows("P-953")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"rate_interval": 300}, "rate-interval"),
        ({"retransmit_rate_limit": 10_000_001}, "repairs-above-data"),
        ({"data_rate_limit": 6_000_000, "rate_interval": 10, "datagram_max_size": 8192}, "datagram-above-allowance"),
        ({"transmission_window_size": 65_536}, "window-small"),
        ({"transmission_window_limit": 65_536}, "window-small"),
        ({"nak_generation_interval": 399}, "generation-short"),
        ({"sm_minimum_interval": 11_000}, "session-messages"),
        ({"activity_timeout": 29_999}, "activity-below-session-messages"),
        ({"activity_timeout": 30_000, "nak_generation_interval": 29_500}, "activity-below-generation"),
    ],
)
def test_each_relation_has_its_finding(kind: str, options: dict[str, Value], code: str) -> None:
    assert code in codes(kind, **options)


def test_relations_of_one_kind_alone() -> None:
    assert codes("lbtru", client_activity_timeout=1_499) == ["client-timeout-short"]
    assert codes("lbtrm", multicast_address_low="224.10.10.15") == ["no-groups"]
    found, _ = split({"transport": "lbtrm", "transport_topic_sequence_number_info_active_threshold": 29})
    assert "marks-end-early" in [code for code, _, _ in transport_relations(found)]


def test_tcp_has_no_findings() -> None:
    assert list(transport_relations(split({"transport_lbtrm_sm_minimum_interval": 11_000})[0])) == []
