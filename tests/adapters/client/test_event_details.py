"""The facts beside an event: objects of messages, names of stores, session ids, and the callbacks of older programs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.client import EventDetails
from stablecast.client.event_details import MAX_LATE_TAGS, MessageTags, store_of
from stablecast.config.option_kinds import Value
from stablecast.core.protocol.events import (
    Confirmed,
    ConfirmFlag,
    Event,
    ReceiverGone,
    Reclaimed,
    RegistrationSuccess,
    SequenceNumberInfo,
    Stable,
    StableFlag,
    StoreMoved,
)
from tests.support.network import Events, Network, until

CONFIRMED: dict[str, Value] = {"ume_confirmed_delivery_notification": 1}


class Tagged(dict[type, list[object]]):
    """An `on_event` callback that records the objects that come back with each kind of event."""

    def __init__(self) -> None:
        super().__init__()
        self.source: object = None

    def __call__(self, event: Event) -> None:
        if self.source is not None:
            self.setdefault(type(event), []).extend(self.source.details(event).tags)  # type: ignore[attr-defined]


@pytest.mark.rows("P-333")
async def test_the_object_of_a_message_comes_back_with_its_events(net: Network) -> None:
    """With stability, confirmation and reclaim, each once for each event."""
    tagged = Tagged()
    context = await net.context(session_id=3)
    source = tagged.source = await context.source(
        "orders", stores=[await net.store()], options={**CONFIRMED, "ume_flight_size": 4}, on_event=tagged
    )
    receiver = context.receiver("orders", source=source.place, session_id=7)
    objects = [{"order": number} for number in range(6)]
    for number, tag in enumerate(objects):
        await source.send(b"%d" % number, tag=tag)
        await source.send(b"without an object")
        for _ in range(2):
            (await anext(receiver)).consumed()
    await until(lambda: len(tagged.get(Confirmed, ())) >= 6 and len(tagged.get(Reclaimed, ())) >= 6)
    assert tagged[Confirmed] == objects
    assert tagged[Reclaimed] == objects
    stable = tagged[Stable]
    assert [tag for tag in objects if tag in stable] == objects
    assert tagged[Confirmed][0] is objects[0]


@pytest.mark.rows("P-334", "P-335")
async def test_a_send_can_ask_for_its_numbers(net: Network) -> None:
    """A small message has one number, a large one a range, and both come with the object."""
    found: list[tuple[int, int, tuple[object, ...]]] = []
    context = await net.context()

    def on_event(event: Event) -> None:
        if isinstance(event, SequenceNumberInfo):
            found.append((event.first, event.last, source.details(event).tags))

    source = await context.source("orders", stores=[await net.store()], on_event=on_event)
    await source.send(b"small", tag="one", number_info=True)
    await source.send(b"small, and nobody asks", tag="two")
    sent = await source.send(bytes(200_000), tag="three", number_info=True)
    await sent.stable()
    assert found == [(0, 0, ("one",)), (2, sent.number, ("three",))]
    assert sent.number > 2


async def test_a_message_that_was_not_sent_leaves_no_object(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], options={"ume_flight_size": 1})
    await net.stop()
    await source.send(b"fills the flight", tag="first")
    assert source.try_send_as(b"no room", tag="second") is None
    assert source.details(Stable(0, 9, 0, StableFlag.STORE)).tags == ("first",)


@pytest.mark.rows("P-652", "P-655", "P-657", "P-666")
async def test_events_name_the_store_and_the_session(net: Network) -> None:
    """The name of the store, the session ids, and the source at a receiver."""
    at_source, at_receiver = Events(), Events()
    address = await net.store()
    context = await net.context(store_names={"backup-one": address})
    details = []

    def on_event(event: Event) -> None:
        at_receiver(event)
        details.append(receiver.details(event))

    source = await context.source("orders", stores=["backup-one"], session_id=5, options=CONFIRMED, on_event=at_source)
    receiver = context.receiver("orders", source=source.place, session_id=9, on_event=on_event)
    await (await source.send(b"1")).stable()
    (await anext(receiver)).consumed()
    granted = source.details(at_source.of(RegistrationSuccess)[0])
    assert (granted.store, granted.store_name, granted.session_id) == (address, "backup-one", 5)
    stable = source.details(await at_source.first(Stable))
    assert (stable.store, stable.store_name) == (address, "backup-one")
    confirmed = await at_source.first(Confirmed)
    assert confirmed.session_id == 9
    index = next(index for index, event in enumerate(at_receiver) if isinstance(event, RegistrationSuccess))
    assert details[index] == EventDetails(address, "backup-one", 9, f"TCP:{source.place}")


@pytest.mark.rows("P-325", "P-660")
async def test_the_callback_for_forced_reclaims(net: Network) -> None:
    """It gets what `on_event` gets with `forced`, and nothing else."""
    forced: list[Reclaimed] = []
    events = Events()
    context = await net.context()
    options: dict[str, Value] = {"ume_message_stability_lifetime": 50, "ume_state_lifetime": 60_000}
    source = await context.source(
        "orders", stores=[await net.store()], on_event=events, on_forced_reclaim=forced.append, options=options
    )
    await (await source.send(b"stable")).stable()
    await net.stop()
    await source.send(b"never stable")
    await until(lambda: forced)
    assert forced == [event for event in events.of(Reclaimed) if event.forced] == [Reclaimed(1, 1, forced=True)]


@pytest.mark.rows("P-330", "P-338")
async def test_the_context_learns_of_receivers_that_are_gone(net: Network) -> None:
    """The event of the source is an event of its context, too."""
    gone: list[ReceiverGone] = []
    events = Events()
    options: dict[str, Value] = {**CONFIRMED, "ume_source_liveness_timeout": 500}
    sending, receiving = await net.context(), await net.context(session_id=6)
    sending.on_event = gone.append
    source = await sending.source("orders", stores=[await net.store()], options=options, on_event=events)
    receiver = receiving.receiver(
        "orders",
        source=source.place,
        options={"ume_receiver_liveness_interval": 100, "ume_user_receiver_registration_id": 77},
    )
    await source.send(b"1")
    (await anext(receiver)).consumed()
    confirmed = await events.first(Confirmed)
    assert (confirmed.receiver_reg_id, confirmed.session_id) == (77, 6), "the publisher knows it by its own number"
    assert confirmed.flags & ConfirmFlag.USER_REG_ID
    await receiving.close()
    assert [await events.first(ReceiverGone)] == gone
    assert (gone[0].receiver_reg_id, gone[0].session_id) == (77, 6)


@pytest.mark.rows("P-333")
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=30), st.integers(0, 100), st.integers(0, 20))
def test_objects_are_found_by_any_number_of_their_message(
    messages: list[tuple[int, int]], first: int, count: int
) -> None:
    """A naive twin: every message with a number in the range, in order; released ones not."""
    tags, twin, number = MessageTags(), [], 0
    for gap, length in messages:
        number += gap
        tags.add(number, number + length - 1, number)
        twin.append((number, number + length - 1))
        number += length
    tags.release(first // 2)
    kept = [(low, high) for low, high in twin if high >= first // 2]
    assert tags.of(first, first + count) == tuple(low for low, high in kept if high >= first and low <= first + count)


def test_a_store_that_moved_is_named_with_its_next_address() -> None:
    moved = StoreMoved("north", "10.0.0.1:1", "10.0.0.2:1")
    assert store_of(moved, [], {}) == ("10.0.0.2:1", "north")


def test_objects_that_wait_for_confirmations_are_bounded() -> None:
    tags = MessageTags(keeps_late=True)
    for number in range(MAX_LATE_TAGS + 5):
        tags.add(number, number, number)
    tags.release(MAX_LATE_TAGS)
    assert len(tags) == MAX_LATE_TAGS
    assert tags.of(0, 5) == (5,)
    few = MessageTags(keeps_late=True)
    for number in range(MAX_LATE_TAGS - 1):
        few.add(number, number, number)
    few.release(MAX_LATE_TAGS)
    assert len(few) == MAX_LATE_TAGS - 1
