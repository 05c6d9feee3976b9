"""A context's side of resolution over services: refused, forgotten and ignored input. See also `test_srs_traps`."""

from typing import Any

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.srs import context as srs_context
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.events import BytesReceived, ConnectionClosed, ConnectionOpened
from stablecast.transports.resolution.srs.settings import ClientConfig
from stablecast.transports.resolution.srs.source_records import source_info
from stablecast.transports.resolution.udp import inputs
from stablecast.transports.resolution.udp.inputs import (
    AddPattern,
    AddReceiver,
    AddSource,
    RemovePattern,
    RemoveReceiver,
    RemoveSource,
    Resolved,
    Unresolved,
)
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameFlag, FrameKind
from tests.transports.resolution.srs_domain import SECOND_SRS, SRS, SrsDomain, record, source

INSTANCE = b"instance"
OTHER = b"neighbor"


def domain(*services: str) -> SrsDomain:
    played = SrsDomain()
    for address in services or (SRS,):
        played.service(address)
    return played


def said(context: SrsContext, *messages: srs.Message) -> BytesReceived:
    """Return messages of the context's first service."""
    payload = b"".join(map(srs.encode, messages))
    frame = Frame(FrameKind.PAYLOAD, 5, FrameFlag.NEXT, payload=payload)
    return BytesReceived(context.links[0].connection, rsocket.encode(frame))


@pytest.mark.rows("T-401")
@pytest.mark.parametrize("count", [0, 6])
def test_one_to_five_services(count: int) -> None:
    """T-401; a service that is named twice is used once."""
    with pytest.raises(MisuseError, match=f"not {count}"):
        SrsContext.create(INSTANCE, [f"srs{number}:27000" for number in range(count)], 1)
    assert len(SrsContext.create(INSTANCE, ["srs:27000"] * 9, 1).links) == 1
    with pytest.raises(MisuseError, match="8 bytes"):
        SrsContext.create(b"short", ["srs:27000"], 1)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (source(""), "topic name"),
        (source(session_id=1 << 32), "32-bit"),
        (source(index=-1), "32-bit"),
        (AddSource("orders", "here", 1, 1, "", persistent=False), "ip:port"),
        (AddReceiver("x" * 247), "topic name"),
        (AddPattern("("), "is malformed"),
        (AddPattern(""), "1 to 254 bytes"),
        (AddPattern("x" * 255), "1 to 254 bytes"),
        (AddPattern("a\0"), "without NUL"),
        (AddPattern("\udcff"), "is malformed"),
        (AddPattern("a{99999999999}"), "is malformed"),
    ],
)
def test_inputs_that_do_not_fit_the_wire_raise_misuse(event: Any, told: str) -> None:
    context = SrsContext.create(INSTANCE, [SRS], 1)
    with pytest.raises(MisuseError, match=told):
        context.receive(event, 0)
    assert context == SrsContext.create(INSTANCE, [SRS], 1)


def test_inputs_beyond_a_bound_raise_misuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_SOURCES", 1)
    for bound in ("MAX_TOPICS", "MAX_PATTERNS"):
        monkeypatch.setattr(srs_context, bound, 1)
    context = SrsContext.create(INSTANCE, [SRS], 1)
    for event in (source(), AddReceiver("a"), AddPattern("a")):
        context.receive(event, 0)
    with pytest.raises(MisuseError, match="already"):
        context.receive(source(), 0)
    for event, told in ((source(index=2), "1 sources"), (AddReceiver("b"), "1 topics"), (AddPattern("b"), "1 pattern")):
        with pytest.raises(MisuseError, match=told):
            context.receive(event, 0)


def test_an_unknown_removal_is_ignored() -> None:
    played = domain()
    played.context("context")
    before = len(played.wire)
    played.feed("context", RemoveSource(1, 1), RemoveReceiver("a"), RemovePattern("a"), Unresolved("a"), Resolved("a"))
    assert len(played.wire) == before


def test_input_of_a_former_connection_is_late() -> None:
    """Formal design, 7.10."""
    played = domain()
    context = played.context("context")
    for event in (ConnectionOpened(99, "10.0.0.1:1"), BytesReceived(99, b"nonsense"), ConnectionClosed(99)):
        played.feed("context", event)
    assert context.counters()["services"] == 1


def test_records_that_cannot_be_used_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    played = domain()
    context = played.context("context")
    played.feed("context", AddReceiver("orders"))
    usable = source_info("orders", record(OTHER))
    foreign = srs.SourceInfo(
        otid=bytes(32),
        topic="orders",
        source="LBTSMX:10.0.0.1:1:00000001[1]",
        topic_index=1,
        functionality=0,
        request_address="10.0.0.1",
        request_port=0,
        instance=OTHER,
    )
    unwanted = source_info("trades", record(OTHER, 2))
    monkeypatch.setattr(srs_context, "MAX_KNOWN", 1)
    further = source_info("orders", record(OTHER, 3))
    played.feed("context", said(context, foreign, unwanted, usable, further, usable))
    assert context.counters() == {
        "services": 1, "known": 1, "told": 5, "unusable": 1, "unwanted": 1, "dropped": 1,
    }  # fmt: skip
    assert played.discovered("context") == [("orders", 1)]


def test_interest_of_others_is_left_aside() -> None:
    """It is for routers."""
    played = domain()
    context = played.context("context")
    played.feed("context", said(context, srs.ReceiverEnd(name="orders", instance=OTHER)))
    assert context.counters()["told"] == 0
    assert context.counters()["services"] == 1


@pytest.mark.rows("T-016")
def test_a_deletion_is_believed_in_both_forms() -> None:
    """A deleted source is no longer known."""
    played = domain()
    context = played.context("context")
    played.feed("context", AddReceiver("orders"))
    for index in (1, 2):
        played.feed("context", said(context, source_info("orders", record(OTHER, index))))
    deleted = source_info("orders", record(OTHER, 1)).otid
    played.feed("context", said(context, srs.SourceDelete(otid=deleted, topic="orders")))
    played.feed("context", said(context, srs.SourceDelete(otid=deleted, topic="orders")))
    assert played.withdrawn("context") == [("orders", 1)]


def test_why_a_receiver_has_no_session() -> None:
    played = SrsDomain()
    context = played.context("context")
    context.receive(AddReceiver("orders"), 0)
    assert context.why("orders") == f"no service is connected and current at {SRS}"
    played = domain()
    context = played.context("context")
    played.feed("context", AddReceiver("orders"))
    assert context.why("orders") == "services know no source"
    played.feed("context", said(context, source_info("orders", record(OTHER))))
    assert context.why("orders") == "services know 1 sources, none could be joined"


def test_a_second_receiver_gets_all_reports_again() -> None:
    played = domain()
    played.pair()
    played.feed("receiver", AddReceiver("orders"), AddPattern("^ord"), AddPattern("^ord"))
    assert played.discovered("receiver") == [("orders", 1)] * 4


def test_unwanted_sources_are_forgotten() -> None:
    """A source stays if another receiver wants it, or if it is an own source."""
    played = domain()
    played.pair()
    played.feed("receiver", source(index=9), AddPattern("^ord"), RemoveReceiver("orders"))
    context = played.contexts["receiver"]
    assert context.counters()["known"] == 2
    played.feed("receiver", RemovePattern("^ord"))
    assert context.counters()["known"] == 1
    assert played.services[SRS].counters()["topics_wanted"] == 0


def test_known_sources_are_reported_again_once_if_still_wanted() -> None:
    """T27: a second after the first complaint."""
    played = domain()
    played.pair()
    played.discovered("receiver")
    played.feed("receiver", Unresolved("orders"), Unresolved("orders"))
    assert played.contexts["receiver"].next_timeout() == SECOND
    played.run(SECOND)
    assert played.discovered("receiver") == [("orders", 1)]
    played.feed("receiver", Unresolved("orders"), RemoveReceiver("orders"))
    played.run(5 * SECOND)
    assert played.discovered("receiver") == []


def test_a_lost_transport_of_ours_is_no_ones_business() -> None:
    played = domain()
    played.context("both")
    played.feed("both", source(), AddReceiver("orders"))
    before = len(played.wire)
    played.feed("both", Unresolved("orders"))
    assert len(played.wire) == before


@pytest.mark.rows("T-401", "T-402", "T-408")
def test_each_service_receives_all_records_however_late_it_connects() -> None:
    played = domain()
    played.context("source", SRS, SECOND_SRS)
    played.feed("source", source(), AddReceiver("trades"), AddPattern("^x"))
    late = played.service(SECOND_SRS)
    played.run(30 * SECOND)
    counters = late.counters()
    assert (counters["sources"], counters["topics_wanted"], counters["patterns_wanted"]) == (1, 1, 1)
    played.feed("source", RemoveSource(7, 1), RemoveReceiver("trades"), RemovePattern("^x"))
    counters = late.counters()
    assert (counters["sources"], counters["topics_wanted"], counters["patterns_wanted"]) == (0, 0, 0)


def test_an_echo_of_our_own_source_changes_nothing() -> None:
    played = domain()
    context = played.context("both")
    played.feed("both", source(), AddReceiver("orders"))
    played.feed("both", said(context, source_info("orders", record(b"both...."))))
    played.feed("both", RemoveSource(7, 1))
    assert played.discovered("both") == [("orders", 1)]
    assert played.withdrawn("both") == []


@pytest.mark.rows("T-407", "T-418")
def test_a_restarted_service_takes_away_what_nobody_announced_in_the_grace() -> None:
    played = domain()
    played.pair()
    played.stop("source")
    played.service()
    played.run(played.now + 20 * SECOND)
    assert played.withdrawn("receiver") == []
    played.run(played.now + 20 * SECOND)
    assert played.withdrawn("receiver") == [("orders", 1)]


def test_the_grace_does_not_outlive_the_connection() -> None:
    played = domain()
    played.pair()
    played.service()
    played.run(played.now + 5 * SECOND)
    link = played.contexts["receiver"].links[0]
    context = played.contexts["receiver"]
    context.handle_timeout(played.now + 60 * SECOND)  # A driver that slept: silence and grace are due at once.
    assert link.state.name == "WAITING"
    assert context.counters()["known"] == 1


@pytest.mark.rows("T-402")
def test_interest_may_end_while_no_service_is_there() -> None:
    """The next full exchange does not name it (T-402); with flood, known sources stay known."""
    played = SrsDomain()
    played.service(SRS)
    played.context("source")
    played.feed("source", source())
    flooded = played.context("flooded", config=ClientConfig(flood=True))
    played.feed("flooded", AddReceiver("orders"), RemoveReceiver("orders"))
    assert flooded.counters()["known"] == 1
    played.feed("flooded", AddReceiver("orders"))
    played.leave("flooded")
    played.run(60 * SECOND)
    played.feed("flooded", RemoveReceiver("orders"))
    played.back("flooded")
    played.run(90 * SECOND)
    assert played.services[SRS].counters()["topics_wanted"] == 0
