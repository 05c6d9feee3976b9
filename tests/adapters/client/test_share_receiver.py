"""The receiver of one share: what its sessions tell the member together, and which configurations cannot share."""

from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import attrs
import pytest

from stablecast.client import Receiver
from stablecast.client.group_receiver import unshared
from stablecast.client.session import ClientSession
from stablecast.client.share_receiver import ShareReceiver
from stablecast.client.subscriber import Subscriber
from stablecast.core.protocol.inputs import Lost, Reset
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.subscription.effects import CloseSession

CONFIG = ReceiverConfig("orders", 7, "", "")


def session(**facts: Any) -> mock.Mock:
    return mock.Mock(**{"begun": True, "leased": True, "contested": False, **facts})


def of(*sessions: mock.Mock) -> Any:
    return SimpleNamespace(sessions=sessions)


@pytest.mark.parametrize(
    ("fact", "decides", "others"),
    [
        (ShareReceiver.granted, session(), session(begun=False)),
        (ShareReceiver.lost, session(leased=False), session()),
        (ShareReceiver.lost, session(leased=False), session(begun=False, leased=False)),
        (ShareReceiver.contested, session(contested=True), session()),
    ],
    ids=["granted", "lost", "lost beside one that waits", "contested"],
)
def test_the_session_with_one_source_decides(fact: property, decides: mock.Mock, others: mock.Mock) -> None:
    """Another member has the share as soon as it has it at the stores of any source."""
    assert fact.fget is not None
    assert [fact.fget(of(*some)) for some in ((decides, others), (others, decides), (others,), ())] == [1, 1, 0, 0]


def test_every_source_has_to_know_what_was_consumed() -> None:
    """All are asked at once. A session without a share has nothing to record."""
    known, late, waiting, lost = session(), session(), session(begun=False), session(leased=False)
    late.record.return_value = False
    assert ShareReceiver.record(of(waiting, lost, known))
    assert not ShareReceiver.record(of(late, known, late))
    assert [one.record.call_count for one in (known, late, waiting, lost)] == [2, 2, 0, 0]


@pytest.mark.parametrize(
    "changes",
    [
        {"use_store": False},
        {"ack_mode": AckMode.EXPLICIT},
        {"request_maximum": 1},
        {"repairs": Repair.ALL & ~Repair.LEASE},
        {"repairs": Repair.ALL & ~Repair.PREFIX},
    ],
    ids=str,
)
def test_what_keeps_a_receiver_from_sharing(changes: dict[str, Any]) -> None:
    assert not unshared(CONFIG)
    assert unshared(attrs.evolve(CONFIG, **changes))


def test_a_session_acknowledges_before_it_asks_whether_that_is_recorded() -> None:
    """Each store that does not show it yet is asked again."""
    told = mock.Mock()
    told._machine.status.unrecorded = ["a:1", "b:1"]
    assert not ClientSession.record(told)
    asked = [mock.call._driver.feed(Reset(store)) for store in ("a:1", "b:1")]
    assert told.mock_calls == [mock.call.acknowledge_now(), *asked]
    told._machine.status.unrecorded = []
    assert ClientSession.record(told)


@pytest.mark.parametrize("call", ["on_control", "on_recovered", "on_broken"])
def test_each_session_of_a_life_hears_what_is_sent_to_it(call: str) -> None:
    """One that ended recovers beside the one with which the life came back."""
    ended, live, other = (mock.Mock(incarnation=life) for life in (1, 1, 2))
    receiver: Any = mock.Mock(_finished=[other, ended], _sessions={1: live}, every_session=[other, ended, live])
    receiver._of = partial(Subscriber._of, receiver)
    message = mock.Mock(incarnation=1)
    getattr(Subscriber, call)(receiver, *([1, [message]] if call == "on_recovered" else [message]))
    assert [len(session.mock_calls) for session in (other, ended, live)] == [call == "on_broken", 1, 1]


@pytest.mark.parametrize(("known", "accepted", "fed"), [(True, False, 1), (False, True, 1), (False, False, 0)])
def test_a_stored_life_without_a_session_has_to_be_accepted(known: bool, accepted: bool, fed: int) -> None:
    """One that has a session may have news."""
    receiver: Any = mock.Mock(_sessions={1: None} if known else {})
    receiver._accepts.return_value = accepted
    Subscriber.on_stored(receiver, mock.Mock(incarnation=1, request="a:1"))
    assert receiver.feed.call_count == fed


@pytest.mark.parametrize(("known", "heard"), [(True, True), (True, False), (False, False)])
def test_a_loss_counts_where_its_life_is_heard(known: bool, heard: bool) -> None:
    """A life may be at several places, and what one of them lost comes from another."""
    session, lost = mock.Mock(transport="a:1"), Lost(9, 5, 3)
    receiver: Any = mock.Mock(_sessions={1: session} if known else {})
    receiver.names.life.return_value, receiver.names.hop.return_value = 1, 9 if heard else 8
    Subscriber._on_lost(receiver, lost)
    assert session.miss.mock_calls == ([mock.call(Lost(1, 5, 3))] if known and heard else [])


def test_a_session_that_is_closed_reports_what_it_confirmed_last() -> None:
    """Else the next session of its life would confirm that again."""
    session = mock.Mock(incarnation=1)
    session.close.side_effect = lambda: session.configure_mock(confirmed=[(0, 5)])
    receiver: Any = mock.Mock(_finished=[session])
    Subscriber._perform(receiver, CloseSession(session))
    [told] = receiver._feed_machine.mock_calls
    assert (told.args[0].report.confirmed, receiver._finished) == ([(0, 5)], [])


def test_a_forked_process_has_none_of_the_sessions() -> None:
    sessions = [mock.Mock(), mock.Mock()]
    Receiver.disown(mock.Mock(every_session=sessions))
    assert [session.mock_calls for session in sessions] == [[mock.call.disown()]] * 2
