"""Who a connection comes from, by address and by certificate, and the process that it may speak for."""

import asyncio
from typing import Any

import pytest

from stablecast.runtime import origins as module
from stablecast.runtime.origins import TRANSLATED, VARIABLE, Origin, Origins
from stablecast.runtime.policy import Names

HERE, STORE, OTHER = "127.0.0.1", "192.0.2.1", "192.0.2.2"
PLACE = f"{STORE}:14567"


@pytest.fixture(autouse=True)
def _no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """This host has the loopback addresses alone."""
    monkeypatch.setattr(module, "interfaces", list)


def listener(name: str) -> asyncio.BaseTransport:
    """A connection to a listener with a certificate for this name; without one for an empty name."""
    subject = ((("commonName", name),),)
    extra: dict[str, Any] = {"peername": (STORE, 14567), "peercert": {"subject": subject} if name else None}
    return asyncio.BaseTransport(extra)


def names(name: str) -> Names:
    return Origin.of(listener(name)).names


@pytest.mark.parametrize(
    ("listens", "speaks", "believed"),
    [
        ("", Origin(STORE), True),
        ("", Origin(OTHER), False),
        ("store", Origin(STORE, names("store")), True),
        ("store", Origin(OTHER, names("store")), True),
        ("store", Origin(STORE, names("member")), False),
        ("store", Origin(STORE), False),
    ],
    ids=["same-host", "other-host", "certificate", "translated-certificate", "other-certificate", "no-certificate"],
)
def test_who_speaks_for_a_listener(listens: str, speaks: Origin, believed: bool) -> None:
    known = Origins()
    known.dial(PLACE)
    known.connect(PLACE, listener(listens))
    assert known.speaks_for(speaks, [PLACE], 1) is believed
    assert known.answers(speaks, 1) is believed
    assert known.agree(speaks, Origin(STORE, names(listens) if listens else ()), 1) is believed
    assert known.oddities == ({} if believed else {"foreign-int": 3})


def test_addresses_of_this_host_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store at all addresses may answer from another one than it was asked at, and so may a forger here."""
    known = Origins()
    known.dial("127.0.0.1:14567")
    assert known.answers(Origin("127.0.0.2"), 1)
    assert known.speaks_for(Origin("127.0.0.2"), ["127.0.0.1:14567"], 1)
    assert not known.speaks_for(Origin(OTHER), ["127.0.0.1:14567"], 1)
    monkeypatch.setenv(VARIABLE, TRANSLATED)
    assert known.speaks_for(Origin(OTHER), ["127.0.0.1:14567"], 1)
    assert known.answers(Origin(OTHER), 1)


def test_a_refusal_is_logged_once_per_host_and_kind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_REPORTS", 2)
    known = Origins()
    for host in (OTHER, OTHER, "192.0.2.3", "192.0.2.4"):
        assert not known.speaks_for(Origin(host), [PLACE], 1)
    assert known.oddities == {"foreign-int": 4}
    assert len(caplog.records) == 2


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN", 2)
    known = Origins()
    for number in range(4):
        known.dial(f"192.0.2.{number}:1")
    assert [known.answers(Origin(f"192.0.2.{number}"), 1) for number in range(4)] == [False, False, True, True]


def test_who_is_met_again_is_the_last_to_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN", 2)
    known = Origins()
    for number in (0, 1, 0, 2):
        known.dial(f"192.0.2.{number}:1")
    assert [known.answers(Origin(f"192.0.2.{number}"), 1) for number in range(3)] == [True, False, True]
