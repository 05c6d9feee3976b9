"""Schedules of whole worlds that found a defect and were made smaller: each broke a rule once, and must never again."""

from pathlib import Path

import pytest

from stablecast.lab.whole.runner import run
from stablecast.lab.whole.schedule import Do, HostFault, Setup, WorldSchedule

FOUND = {
    # A source that keeps messages until they are confirmed never asked for confirmations, so its flight stayed full.
    "confirmations_are_never_asked_for": WorldSchedule(
        28, Setup(options=(("ume_flight_size", 5), ("ume_retention_unique_confirmations", 1)))
    ),
    # A store without descriptors wrote a hundred tracebacks when one client connected.
    "a_hundred_tracebacks_for_one_connection": WorldSchedule(
        100, Setup(), (HostFault(1_607, Do.SCARCE, "store0", 689), HostFault(1_776, Do.TWIN, "source", 3_028))
    ),
    # `verify` reported A1 when a receiver that sets the pace acknowledged the messages below its start.
    "a_start_above_messages_that_a_store_has": WorldSchedule(
        55,
        Setup(
            options=(("ume_receiver_paced_persistence", 1), ("ume_flight_size_bytes", 500_000)),
            receiver_options=(("ume_receiver_paced_persistence", 1),),
            store_options=("repository-allow-receiver-paced-persistence=1",),
            burst=2,
            size=20_000,
        ),
    ),
    # `verify` reported H1: a store lost its disk, and with it the trace that has its answers to a receiver.
    "an_answer_of_a_store_that_lost_its_trace": WorldSchedule(
        1110,
        Setup(finder="relays", burst=2, size=100),
        (HostFault(1_524, Do.BLACKOUT, "receiver1", 3_476), HostFault(3_516, Do.WIPE, "store2", 1)),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_schedule_that_found_a_defect_is_clean(name: str, tmp_path: Path) -> None:
    assert run(FOUND[name], tmp_path).violations == ()
