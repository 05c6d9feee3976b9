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
    # `verify` reported H1: a daemon without descriptors refuses a new source, and its traced machine learns nothing.
    "a_refusal_for_lack_of_room": WorldSchedule(
        171,
        Setup(size=100),
        (HostFault(2_724, Do.LEAVE, "source", 2_036), HostFault(4_582, Do.SCARCE, "store0", 418, "", 2)),
    ),
    # A receiver without descriptors ended, because the trace of the source's next life could not be written.
    "a_trace_without_a_descriptor": WorldSchedule(
        20060,
        Setup(options=(("transport", "lbtru"), ("ume_flight_size", 5)), pause_ms=60, ids="session"),
        (
            HostFault(4_450, Do.MUTE, "receiver0", 275),
            HostFault(4_494, Do.LEAVE, "source", 1),
            HostFault(4_697, Do.SCARCE, "receiver0", 151),
        ),
    ),
    # `verify` reported S2 and S3: the source deregistered while a store was away.
    "a_store_that_was_away_when_the_source_deregistered": WorldSchedule(
        1501, Setup(), (HostFault(1_495, Do.KILL, "store2", 3_505), HostFault(4_798, Do.LEAVE, "source", 202))
    ),
    # A store asked for a message for ever that the transport had repeated late.
    "a_message_that_is_held_counts_as_lacking": WorldSchedule(
        3051,
        Setup(
            options=(("ume_flight_size", 1), ("transport", "lbtru")),
            pause_ms=120,
            topics=("orders", "trades"),
            ids="session",
        ),
        (HostFault(3_719, Do.NOISE, "source", 80, "", 20),),
    ),
    # A receiver without descriptors ended, because the trace of the first life that it met could not be written.
    "a_first_trace_without_a_descriptor": WorldSchedule(
        2165,
        Setup(options=(("transport", "lbtrm"),)),
        (HostFault(1_294, Do.TWIN, "receiver1", 1), HostFault(1_464, Do.SCARCE, "receiver1", 41)),
    ),
    # A source was cut off, ended and started again. What the old process had written took the RegID from the new one.
    "a_request_that_outlives_its_process": WorldSchedule(
        1609,
        Setup(pause_ms=120),
        (
            HostFault(2_324, Do.CUT, "source", 2_676),
            HostFault(2_335, Do.RESTORE, "store2", 304),
            HostFault(3_571, Do.LEAVE, "receiver0", 1_429),
            HostFault(4_134, Do.CLOSE, "source", 1),
        ),
    ),
    # A receiver that returned began above stable messages that the store which knew it had: that store answered 0.4 s
    # late, one of the others had an empty disk, and one had been away. Later it acknowledged them to all.
    "a_return_between_stores_that_lack_messages": WorldSchedule(
        1,
        Setup(),
        (
            HostFault(0, Do.KILL, "store2", 3_000),
            HostFault(1_500, Do.KILL, "receiver0", 3_500),
            HostFault(2_500, Do.KILL, "source", 700),
            HostFault(2_500, Do.WIPE, "store1", 50),
            HostFault(2_900, Do.CUT, "store0", 4_000, "store1"),
            HostFault(2_900, Do.CUT, "store0", 4_000, "store2"),
            HostFault(4_900, Do.MUTE, "store0", 400, "receiver0"),
        ),
        horizon_ms=10_000,
    ),
    # A store named the life that waits for its registration, with the numbers of the life before. A receiver that asked
    # it dropped stable messages as a dead tail, and reported them lost.
    "a_life_that_the_stores_let_wait": WorldSchedule(
        2,
        Setup(pause_ms=120, stored=True),
        (HostFault(1_000, Do.KILL, "receiver1", 2_600), HostFault(2_000, Do.POWER, "source", 1_300)),
        horizon_ms=9_000,
    ),
    # The source lost power and registered again. Its stores dropped what a receiver acknowledged of the life before,
    # and the receiver ended before it met the next one.
    "an_acknowledgement_between_two_lives": WorldSchedule(
        30688, Setup(), (HostFault(858, Do.POWER, "source", 1), HostFault(1_968, Do.KILL, "receiver1", 1))
    ),
    # The source closed, and then the application acknowledged its last messages itself. No store got that.
    "an_explicit_acknowledgement_after_the_source_closed": WorldSchedule(
        30855,
        Setup(modes=("explicit", "plain")),
        (HostFault(2_764, Do.CLOSE, "source", 2_236), HostFault(4_372, Do.CLOSE, "receiver0", 1)),
    ),
    # `verify` reported S1: the traces of the stores that had the messages of a life that deregistered went with power.
    "stable_messages_whose_traces_went_with_power": WorldSchedule(
        30195,
        Setup(topics=("orders", "trades"), size=100),
        (HostFault(1_976, Do.LEAVE, "source", 13), HostFault(4_100, Do.BLACKOUT, "source", 1)),
    ),
    # A reader that followed took a source that had deregistered and returned for the old one, and passed over its first
    # messages without a word.
    "a_source_that_returns_from_0_to_a_reader": WorldSchedule(
        20322, Setup(modes=("reader", "plain")), (HostFault(2_170, Do.LEAVE, "source", 1),)
    ),
    # A reader that followed ended with an internal error once no store knew its source any more.
    "a_source_that_every_store_forgot": WorldSchedule(
        40143,
        Setup(finder="multicast", pause_ms=400, burst=1, size=1000, modes=("plain", "reader"), named=True, hasty=True),
        (HostFault(437, Do.LEAVE, "source", 2_125),),
    ),
    # A source died between the pieces of a message. In arrival order its last piece came after the pieces of the next
    # life's message, which has the numbers of the others, and that one was reported lost.
    "a_message_over_the_pieces_of_a_life_before": WorldSchedule(
        701452,
        Setup(
            finder="relay",
            options=(
                ("transport", "lbtrm"),
                ("ume_retention_unique_confirmations", 1),
                ("ume_activity_timeout", 1_500),
            ),
            size=20_000,
            modes=("arrival", "arrival"),
        ),
        (HostFault(4_488, Do.CLOSE, "source", 42), HostFault(4_607, Do.TWIN, "source", 49)),
    ),
    # A receiver had no descriptor left when the resolver told it of a source, which it does once. It never joined.
    "a_source_that_was_found_without_a_descriptor": WorldSchedule(
        702748,
        Setup(finder="relay", options=(("transport", "lbtrm"),), topics=("orders", "trades"), burst=2, size=60),
        (HostFault(271, Do.LEAVE, "receiver0", 53), HostFault(340, Do.SCARCE, "receiver0", 159, "", 2)),
    ),
    # The service reported the end of a source after its next life was found at the same place. A member that took a
    # share over later joined no source with it, so its messages were never processed.
    "a_share_that_joins_no_source": WorldSchedule(
        704030,
        Setup(finder="service", group=True, modes=("reader", "plain"), size=100, pause_ms=120, burst=2, hasty=True),
        (HostFault(2_765, Do.KILL, "source", 43), HostFault(3_874, Do.KILL, "receiver1", 1_031)),
    ),
    # Members of a group ended, because no descriptor was left for the request port of a share.
    "a_share_without_a_descriptor": WorldSchedule(
        703035,
        Setup(finder="relay", group=True, modes=("settled", "arrival"), size=60),
        (HostFault(655, Do.SCARCE, "receiver0", 3_802, "", 2), HostFault(772, Do.SCARCE, "receiver1", 327)),
    ),
    # A member of a group died, and another one took its share over. It knew an announcement from before the last
    # messages, and took what the stores had acknowledged of them for a dead tail: it processed one again.
    "a_share_whose_last_messages_were_not_announced": WorldSchedule(
        700709, Setup(pause_ms=400, size=60, group=True), (HostFault(1_407, Do.KILL, "receiver1", 126),)
    ),
    # Seed 701930: a message got lost on the way to all stores, and the source died before it sent that again. The next
    # life resumed above it. The judge waited until the stores had from each other what was never stable anywhere.
    "a_message_that_reached_no_store": WorldSchedule(
        1,
        Setup(options=(("transport", "lbtrm"),), pause_ms=10),
        (HostFault(1_000, Do.MUTE, "source", 10), HostFault(1_015, Do.KILL, "source", 500)),
        horizon_ms=2_000,
    ),
    # A store got two signals at once, so the second ended it in the middle of a turn of its loop. What the turn had
    # left ran when the world was over, and failed.
    "a_store_that_is_closed_twice_at_once": WorldSchedule(
        704226, Setup(size=60), (HostFault(4_999, Do.CLOSE, "store0", 1), HostFault(4_999, Do.CLOSE, "store0", 1))
    ),
    # `verify` reported P6: a store had let go of all messages of a life when it began again, and its traces from before
    # went with power. It ascribed what it had let go to the next life.
    "a_life_of_which_a_store_let_go": WorldSchedule(
        704700,
        Setup(
            options=(
                ("ume_confirmed_delivery_notification", 1),
                ("ume_activity_timeout", 1_500),
                ("ume_receiver_paced_persistence", 1),
                ("ume_flight_size_bytes", 500_000),
            ),
            store_options=("repository-allow-receiver-paced-persistence=1",),
            size=60,
        ),
        (HostFault(3_013, Do.KILL, "source", 255), HostFault(4_677, Do.POWER, "store1", 1)),
    ),
    # `verify` reported S2 and S3: a store was away while the next life of a source registered and deregistered. It had
    # the life before, and cut it for the one that began again.
    "a_life_before_the_one_that_deregistered": WorldSchedule(
        900134,
        Setup(size=60),
        (
            HostFault(228, Do.POWER, "store0", 3_531),
            HostFault(1_259, Do.KILL, "source", 1),
            HostFault(3_285, Do.LEAVE, "source", 1),
        ),
    ),
    # `verify` reported P6: a store alone had the last messages of a life, cut them for the next one, and lost its
    # traces.
    "a_tail_that_was_cut_in_a_lost_trace": WorldSchedule(
        3,
        Setup(size=60),
        (
            HostFault(1_000, Do.MUTE, "source", 400, "store0"),
            HostFault(1_000, Do.MUTE, "source", 400, "store2"),
            HostFault(1_290, Do.CUT, "store1", 1_500, "source"),
            HostFault(1_300, Do.KILL, "source", 200),
            HostFault(4_677, Do.POWER, "store1", 1),
        ),
    ),
    # `verify` reported A3: the trace of a receiver went with power, and its next process had acknowledged nothing.
    "a_receiver_whose_first_trace_went_with_power": WorldSchedule(
        705070,
        Setup(size=60, pause_ms=120),
        (HostFault(1_277, Do.POWER, "receiver1", 621), HostFault(3_791, Do.POWER, "source", 185)),
    ),
    # A reader that follows took the next life for another source, because a store told of it before it announced its
    # history, and returned everything again.
    "a_life_that_a_reader_heard_of_before_its_history": WorldSchedule(
        732817,
        Setup(
            finder="multicast",
            options=(("ume_confirmed_delivery_notification", 1), ("ume_flight_size", 5)),
            pause_ms=240,
            burst=2,
            size=100,
            modes=("plain", "reader"),
            ids="new",
            ending="deregister",
            start="time",
        ),
        (
            HostFault(3_553, Do.CUT, "source", 858),
            HostFault(3_649, Do.LEAVE, "source", 34),
            HostFault(4_085, Do.RESET, "store2", 19),
            HostFault(4_479, Do.RESTORE, "store1", 521),
        ),
    ),
    # `verify` reported S1 as above: two sentences of P6 lacked the same number first, and only the shorter one was
    # listed.
    "stable_messages_behind_an_acknowledgement_whose_trace_is_lost": WorldSchedule(
        910296,
        Setup(topics=("orders", "trades"), pause_ms=60, size=60),
        (
            HostFault(1_200, Do.RESET, "source", 141),
            HostFault(2_000, Do.FULL, "store2", 450, "", 1_000),
            HostFault(2_400, Do.LEAVE, "source", 2_600),
            HostFault(3_200, Do.POWER, "store0", 540),
        ),
    ),
    # A receiver without a session id or RegIDs is new to its stores in the next life, and begins above what limits let
    # go of. A checker took it for the one of the life before.
    "a_receiver_that_is_new_in_the_next_life": WorldSchedule(
        910452,
        Setup(
            store_options=("repository-type=memory", "repository-size-threshold=2048"),
            pause_ms=60,
            size=1_000,
            ids="new",
            storage="memory",
            kept=2,
        ),
        (HostFault(1_006, Do.POWER, "source", 1),),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_schedule_that_found_a_defect_is_clean(name: str, tmp_path: Path) -> None:
    for traces in tmp_path, None:  # To write traces takes time, so the runs differ.
        assert run(FOUND[name], traces).violations == ()


def test_a_declaration_on_a_full_disk_writes_no_traceback() -> None:
    """The caller gets the error of the journal; a callback raised it on the loop, too. Traces would hide it."""
    options = (("ume_confirmed_delivery_notification", 1), ("ume_flight_size", 1), ("transport", "lbtru"))
    setup = Setup(
        finder="relays",
        options=options,
        pause_ms=200,
        size=1_000,
        modes=("callback", "slow"),
        handles=2,
        ending="deregister",
    )
    faults = (
        HostFault(39, Do.CUT, "store1", 29, "store2"),
        HostFault(1_197, Do.BLACKOUT, "finder1", 314),
        HostFault(1_692, Do.FULL, "store1", 1_423),
        HostFault(1_755, Do.RESTORE, "store1", 1_322),
        HostFault(4_648, Do.SCARCE, "source", 352, "", 1),
    )
    assert run(WorldSchedule(266, setup, faults)).violations == ()


def test_a_receiver_that_stores_forgot_goes_on_behind_what_it_acknowledged() -> None:
    """The source never restarts. The store that knows the receiver is late, and the others begin at 0."""
    faults = (
        HostFault(0, Do.KILL, "store2", 3_000),
        HostFault(1_500, Do.KILL, "receiver0", 3_500),
        HostFault(2_500, Do.WIPE, "store1", 50),
        HostFault(2_900, Do.CUT, "store0", 4_000, "store1"),
        HostFault(2_900, Do.CUT, "store0", 4_000, "store2"),
        HostFault(4_900, Do.MUTE, "store0", 400, "receiver0"),
    )
    result = run(WorldSchedule(1, Setup(), faults, horizon_ms=10_000))
    assert result.violations == ()
    numbers = [line["number"] for line in result.lines if line["is"] == "delivered" and line["run"] == "receiver0.2"]
    assert isinstance(numbers[0], int)
    assert numbers[0] >= 16
