"""The sentence for a refusal names the option that does not fit, with the value of either side."""

import attrs
import pytest

from stablecast.core.protocol.messages import UNSET, Pace, Refusal, Refused, Role, Wishes
from stablecast.core.protocol.refusals import difference, sentence
from tests.core.samples import register

ALLOWED = Wishes(100, 200, 300, flight_bytes=50, write_delay_ms=1000)
REFUSED = Refused(Role.SOURCE, 0, 1, 7, 9, Refusal.INCOMPATIBLE, pace=Pace.RECEIVERS, permitted=ALLOWED)


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        (Wishes(101), "ume_repository_size_threshold 101, and the store has 100 (repository-size-threshold)"),
        (Wishes(size_limit=201), "ume_repository_size_limit 201, and the store has 200 (repository-size-limit)"),
        (Wishes(disk_limit=301), "ume_repository_disk_file_size_limit 301, and the store has 300"),
        (Wishes(write_delay_ms=1001), "ume_write_delay 1001, and the store has 1000 (repository-disk-write-delay)"),
        (Wishes(ack_on_reception=True), "ume_repository_ack_on_reception 1, and the store has 0"),
        (Wishes(flight_bytes=51), "ume_flight_size_bytes 51, and the store has 50"),
    ],
)
def test_a_wish_beyond_the_terms_is_named_with_both_values(wishes: Wishes, told: str) -> None:
    request = register(pace=Pace.RECEIVERS, wishes=wishes)
    assert f"it asks for {told}" in difference(request, REFUSED)
    assert told in sentence("a:1", REFUSED, request)


def test_a_changed_wish_is_named_with_the_value_of_before() -> None:
    before = attrs.evolve(REFUSED, permitted=Wishes(100, write_delay_ms=UNSET))
    request = register(pace=Pace.RECEIVERS, wishes=Wishes(100, write_delay_ms=0))
    told = "it asks for ume_write_delay 0, and the store has the default (repository-disk-write-delay)"
    assert difference(request, before) == told


def test_without_terms_the_remedy_is_general() -> None:
    answer = attrs.evolve(REFUSED, permitted=None)
    assert difference(register(), answer) == ""
    assert "Compare pacing and sizes" in sentence("a:1", answer, register())
