"""A run that simply goes on is handed over without an input: all comes to the same as if the machine were fed."""

import asyncio
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.client.batch import ArrivalTime, Batch
from stablecast.client.callbacks import CallbackDelivery
from stablecast.client.inbox import Inbox
from stablecast.client.message import Message
from stablecast.client.redelivery import Redeliverer
from stablecast.client.session import ClientSession
from stablecast.core.machine.serial import MODULUS, wire
from stablecast.core.protocol.effects import AskLow, AskRegId
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.inputs import Gone
from stablecast.core.protocol.messages import StoreEntry
from stablecast.core.protocol.settings import AckMode
from stablecast.transports import codec
from stablecast.transports.codec.identity import TOPIC_BITS
from stablecast.transports.codec.lbttcp import Run, build
from tests.core.drivers import ReceiverDriver
from tests.core.samples import LIFE, info, registered
from tests.support.abstract_states import abstract

START = MODULUS - 9
"""The numbers of the wire wrap on the way."""

TOPIC_INDEX = LIFE % (1 << TOPIC_BITS)
LOCAL = "127.0.0.1"
CLOSING = b"close"
ACKING = b"ack"

STEP = st.one_of(
    st.tuples(st.just("live"), st.just(0), st.integers(1, 3), st.sampled_from([b"", b"", ACKING])),
    st.tuples(st.sampled_from(["live", "recovered"]), st.integers(-5, 5), st.integers(1, 3), st.just(b"")),
    st.tuples(st.sampled_from(["stop", "broken"]), st.just(0), st.just(1), st.just(b"")),
    st.tuples(st.just("live"), st.just(0), st.just(2), st.just(CLOSING)),
)


@attrs.define
class Side:
    """The owner of a session: an application that acknowledges or closes, and a pool that records the messages."""

    told: list[object] = attrs.field(factory=list)
    session: ClientSession = attrs.field(init=False)
    arrival: ArrivalTime = attrs.field(factory=ArrivalTime)
    redeliverer: Redeliverer = attrs.field(
        factory=lambda: Redeliverer(Inbox(lambda: None), lambda _: None, None, "", lambda *_: None, explicit=True)
    )

    @property
    def inbox(self) -> Inbox[Batch]:
        return Inbox(lambda: None)

    def deliver(self, batch: Batch) -> None:
        CallbackDelivery(self.on_message, "receiver", self.inbox, 3600.0).deliver(batch)

    def on_message(self, message: Message) -> None:
        self.told.append((message.sequence_number, message.payload, message.recovered, message.incarnation))
        if message.payload == ACKING:
            message.ack()
        elif message.payload == CLOSING:
            self.session.close()

    def on_notify(self, event: Event, source: str = "") -> None:
        self.told.append(event)

    def explained(self, event: Event) -> Event:
        return event

    def choose_reg_id(self, question: AskRegId, transport: str) -> int:
        return 0

    def choose_low(self, question: AskLow, session: object) -> int:
        return question.low

    def send(self, address: str, message: bytes) -> None:
        self.told.append((address, message))


def session_of(side: Side, trace: Path | None = None, **changes: Any) -> ClientSession:
    """It delivers from `START` on."""
    places: dict[str, Any] = {"reply_to": f"{LOCAL}:1", "source_request": f"{LOCAL}:2", "ack_mode": AckMode.EXPLICIT}
    config = attrs.evolve(ReceiverDriver().machine.config, **(places | changes))
    side.session = ClientSession(side, config, side, trace, f"{LOCAL}:4")  # type: ignore[arg-type]  # what it needs of them
    side.session.start({})
    store = StoreEntry(0, 0, f"{LOCAL}:3", 50, 1)
    side.session.on_message(info(1, stores=(store,), request=f"{LOCAL}:2", high=wire(START - 1)))
    side.session.on_message(registered(store_index=0, generation=1, low=wire(START), high=wire(START - 1)))
    return side.session


def step(session: ClientSession, kind: str, place: int, run: Run, short: bool) -> None:
    """One thing that happens, `place` numbers from where the stream goes on."""
    match kind:
        case "live" if short:
            session.on_run(run)
        case "live":
            session.feed_run(run)
        case "recovered":
            contents = [b"x"] * run.count
            session.on_recovered([codec.RecoveredRun(LIFE, LIFE, run.first, contents)])
        case "stop":
            session.stop()
        case "broken" if session._stream is not None:
            session._stream.forget(LIFE)


async def both(steps: list[tuple[str, int, int, bytes]]) -> None:
    short, long = Side(), Side()
    sessions = session_of(short), session_of(long)
    for kind, place, count, content in steps:
        first = sessions[0]._machine.arrivals.high + 1 + place
        block = build(TOPIC_INDEX, wire(first), [content or b"x"] * count)
        run = Run(TOPIC_INDEX, wire(first), count, count * len(content or b"x"), block)
        for session, is_short in zip(sessions, (True, False), strict=True):
            step(session, kind, place, run, is_short)
            session.report_consumed()
        one, other = (session._machine for session in sessions)
        assert short.told == long.told
        assert abstract(one) == abstract(other)
        assert (one.lives, one.window.acked, one.arrivals.high) == (
            other.lives,
            other.window.acked,
            other.arrivals.high,
        )
        assert sessions[0].waiting == sessions[1].waiting
        streams = [session._stream for session in sessions]
        nexts = [stream.next for stream in streams if stream is not None]
        assert nexts == [nexts[0]] * 2
    for session in sessions:
        session.close()
    assert short.told == long.told


@given(st.lists(STEP, max_size=12))
def test_handed_over_at_once_or_fed(steps: list[tuple[str, int, int, bytes]]) -> None:
    """With gaps, repeats, what is recovered, a stream that breaks, and an application that acknowledges and closes."""
    with mock.patch("stablecast.client.callbacks.TURN_SECONDS", 3600.0):  # Both ways have time, on any machine.
        asyncio.run(both(steps))


async def test_a_continuing_run_is_an_input_only_where_it_is_recorded(tmp_path: Path) -> None:
    """A recorder sees every run. Without one the machine is fed the first, because a stream may begin anywhere."""
    for trace, fed in ((None, 1), (tmp_path, 3)):
        side = Side()
        session = session_of(side, trace)
        for number in range(START, START + 3):
            session.on_run(Run(TOPIC_INDEX, wire(number), 1, 1, build(TOPIC_INDEX, wire(number), [b"x"])))
        taken = [(wire(number), b"x", False, LIFE) for number in range(START, START + 3)]
        assert side.told[-3:] == taken
        assert session._tokens._last == fed
        session.close()


@pytest.mark.rows("P-676")
async def test_a_session_starts_no_lower_than_this_run_did() -> None:
    """The machine learns the number that the succession of sessions permits, not the one that it asked about."""
    side = Side()
    places: dict[str, Any] = {"reply_to": f"{LOCAL}:1", "source_request": f"{LOCAL}:2"}
    config = attrs.evolve(ReceiverDriver().machine.config, **places)
    side.session = ClientSession(side, config, side, None, f"{LOCAL}:4")  # type: ignore[arg-type]  # what it needs of them
    side.session.start({LIFE: [(7, 10)]})
    store = StoreEntry(0, 0, f"{LOCAL}:3", 50, 1)
    side.session.on_message(info(1, stores=(store,), request=f"{LOCAL}:2", low=0, high=29, lives=((LIFE, 0),)))
    side.session.on_message(registered(store_index=0, generation=1, low=0, high=29))
    assert side.session._machine.requests.cared.ranges == [(7, 30)]


async def test_consumed_messages_are_reported_when_the_driver_settles() -> None:
    """Before that, one report for all messages of a turn waits. Else a quiet session would acknowledge nothing."""
    side = Side()
    session = session_of(side)
    session.on_run(Run(TOPIC_INDEX, wire(START), 2, 2, build(TOPIC_INDEX, wire(START), [b"x", b"y"])))
    assert session._consumed is not None
    for _ in range(3):
        await asyncio.sleep(0)
    assert session._consumed is None


@attrs.define
class OtherShares(Side):
    """The owner is a share of a group, and all messages are for other shares."""

    def deliver(self, batch: Batch) -> None:
        for first, stop in batch.spans(0, batch.count):
            self.session.pass_over(first, stop - 1)

    def on_consumed(self, session: ClientSession) -> None:
        self.told.append("done")


async def test_messages_of_other_shares_keep_no_session_that_ended() -> None:
    """The next life of the source is joined when the ended one is done, and nobody else notices that it is."""
    side = OtherShares()
    session = session_of(side, ack_mode=AckMode.BATCHED)
    session.end()
    session.on_recovered([codec.RecoveredRun(LIFE, LIFE, wire(START), [b"x", b"y"])])
    assert side.told[-1] == "done"
    assert session.settled


@pytest.mark.parametrize("request_port", ["a:1", None])
def test_a_session_that_ends_takes_what_it_asked_of_the_source_to_the_stores(request_port: str | None) -> None:
    """The source answers no more. One that never announced itself was asked for nothing."""
    told = mock.Mock()
    told._machine.info = None if request_port is None else info(request=request_port)
    ClientSession.end(told)
    assert told.mock_calls == ([] if request_port is None else [mock.call._driver.feed(Gone(request_port))])
