"""The listeners of one joined session: each gets the items of the topics that it claims, or of all."""

from unittest import mock

import attrs

from stablecast.runtime.reliable_receivers import Joined, _JoinedSession
from stablecast.runtime.source_strings import Where
from stablecast.transports import codec
from stablecast.transports.codec.identity import TOPIC_BITS
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.inputs import LeaveSession
from stablecast.transports.wire.lbmc import Message, MessageKind, decode
from tests.core.samples import info

SESSION_ID = 9


def run(topic: int) -> Run:
    return Run(topic, 0, 1, 4, b"data")


def announced(topic: int) -> Message:
    return decode(codec.encode(info(incarnation=SESSION_ID << TOPIC_BITS | topic, request="10.0.0.1:14391")))[0]


@attrs.define
class Session:
    """A session without sockets, and what each of its listeners got."""

    got: dict[str, list[fx.ReceiverEffect]] = attrs.field(factory=dict)
    closed: mock.Mock = attrs.field(factory=mock.Mock)
    session: _JoinedSession = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        machine = mock.Mock(**{"next_timeout.return_value": None, "take_effects.return_value": []})
        hearing = mock.Mock()
        where = Where("1.2.3.4", 1, SESSION_ID)
        self.session = _JoinedSession(where, machine, hearing, hearing, self.closed)

    def join(self, name: str, *topics: int) -> Joined:
        listener = Joined(self.session, self.got.setdefault(name, []).append)
        self.session.joined[listener] = set()
        for topic in topics:
            listener.claim(topic)
        return listener

    def told(self, effect: fx.ReceiverEffect) -> dict[str, list[fx.ReceiverEffect]]:
        for one in self.got.values():
            one.clear()
        self.session._perform(effect)
        return {name: list(got) for name, got in self.got.items()}


async def test_a_listener_gets_the_topics_that_it_claims_or_all() -> None:
    """Malformed messages have no topic; who claims none counts them."""
    shared = Session()
    items: list[Run | Message] = [run(1), announced(1), run(2), announced(2), run(1), Message(MessageKind.CONTROL)]
    whole = fx.Received(items)
    one = shared.join("one", 1)
    assert shared.told(whole) == {"one": [whole]}, "a single listener drops what it did not claim"
    shared.join("all")
    both = shared.join("both", 1, 2)
    first = fx.Received([items[0], items[1], items[4]])
    assert shared.told(whole) == {"one": [first], "all": [whole], "both": [fx.Received(items[:5])]}
    for topic, told in ((1, {"one", "all", "both"}), (2, {"all", "both"}), (3, {"all"})):
        lost = fx.TopicLost(topic, 5, 1)
        assert shared.told(lost) == {name: [lost] * (name in told) for name in shared.got}
    both.close()
    both.claim(3)
    assert shared.session._claimed.keys() == {1}
    assert shared.told(fx.Received([run(2)]))["both"] == []
    one.close()
    assert shared.told(fx.TopicLost(1, 5, 1)) == {"one": [], "all": [fx.TopicLost(1, 5, 1)], "both": []}
    shared.closed.assert_not_called()


async def test_the_last_listener_and_the_end_close_a_session_once() -> None:
    left = Session()
    left.join("one", 1).close()
    left.closed.assert_called_once_with()
    ended, end = Session(), fx.SessionEnded("why")
    listeners = [ended.join(name, 1) for name in ("one", "two")]
    assert ended.told(end) == {"one": [end], "two": [end]}
    ended.closed.assert_called_once_with()
    assert ended.session.machine.receive.call_args.args[0] == LeaveSession()  # type: ignore[attr-defined]
    for listener in listeners:
        listener.close()
    ended.closed.assert_called_once_with()
