"""Names of stores across domains. Rows R-222 to R-224."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stablecast.transports.resolution.udp.store_names import MAX_NAMES
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.names import FORGET_NS, RATE, DomainNames, answer, answers, question
from stablecast.transports.wire import lbmr, lbmr_extended
from tests.transports.routing.bench import Bench

INFO = lbmr.ContextInfo
STORE = lbmr.standard_options(b"store---")


def asking(name: str) -> INFO:
    return INFO(flags=INFO.QUERY, name=name, options=STORE)


def telling(name: str, host: str = "10.0.2.1") -> INFO:
    return INFO(flags=INFO.ADDRESS, name=name, address=host, port=14_567, instance=b"store---", options=STORE)


@pytest.mark.rows("R-224")
def test_what_one_domain_asks_all_others_are_asked() -> None:
    bench = Bench.begun(3)
    assert bench.feed(ev.Overheard(0, asking("FAR"))) == [
        fx.TellName(1, question("FAR")),
        fx.TellName(2, question("FAR")),
    ]


def test_an_answer_goes_to_those_who_asked_with_the_domain_of_the_store() -> None:
    bench = Bench.begun(3)
    assert bench.feed(ev.Overheard(1, telling("FAR"))) == []
    bench.feed(ev.Overheard(0, asking("FAR")))
    (told,) = bench.feed(ev.Overheard(1, telling("FAR")))
    assert isinstance(told, fx.TellName)
    assert told.portal == 0
    address = told.record.options[0]
    assert isinstance(address, lbmr_extended.RemoteAddress)
    assert (address.domain, address.address, address.port) == (2, "10.0.2.1", 14_567)
    # A store answers the question of a router in the same form.
    again = lbmr_extended.Packet(lbmr_extended.RemoteContexts.of(told.record), STORE)
    assert bench.feed(ev.Overheard(1, again)) == [told]
    assert bench.feed(ev.Overheard(1, telling("OTHER"))) == []


def test_a_name_is_forgotten_that_nobody_asks_for_any_more() -> None:
    bench = Bench.begun()
    bench.feed(ev.Overheard(0, asking("FAR")))
    bench.run(FORGET_NS)
    assert bench.feed(ev.Overheard(1, telling("FAR"))) == []


def test_names_and_questions_are_bounded() -> None:
    names = DomainNames()
    assert sum(names.admits(0) for _ in range(1_000)) <= RATE.records
    for number in range(MAX_NAMES + 1):
        assert names.ask(f"store {number}", number)
    assert len(names.asked) == MAX_NAMES
    assert not names.wants("store 0", 0)
    assert not names.ask("x" * 300, 0)


def test_what_routers_say_is_not_passed_on() -> None:
    bench = Bench.begun(3)
    bench.feed(ev.Overheard(0, asking("FAR")))
    routers = lbmr.standard_options(b"z-router", lbmr.SourceType.GATEWAY)
    record = next(answer(told) for told in answers(telling("FAR"), 2))
    packet = lbmr_extended.Packet(lbmr_extended.RemoteContexts.of(record, question("FAR")), routers)
    assert bench.feed(ev.Overheard(1, packet)) == []


@given(st.text(max_size=4), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
@example("A\0B", 1, 0)  # A NUL ends a name, whatever follows.
@example("\0B", 1, 0)
def test_any_record_is_an_answer_or_none(name: str, port: int, flags: int) -> None:
    options = (
        lbmr_extended.RemoteName(flags=0, name=name.encode("utf-8", "surrogateescape") + b"\0"),
        lbmr_extended.RemoteAddress(flags=0, domain=9, address="10.0.0.1", port=port),
    )
    body = lbmr_extended.RemoteContexts.of(lbmr_extended.RemoteRecord(flags, options))
    found = {told.name: answer(told) for told in answers(lbmr_extended.Packet(body, STORE), 2)}
    told = bool(name.partition("\0")[0]) and port > 0 and not flags & lbmr_extended.RemoteRecord.QUERY
    assert len(found) == told
