"""Names of stores: own names, and queries for names."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp import store_names as module
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import (
    ContextEffect,
    NameEffect,
    NameFound,
    NameLost,
    Remark,
    SendDatagram,
    Tell,
)
from stablecast.transports.resolution.udp.inputs import AddName, AskName, DatagramArrived, ForgetName, NameAlive
from stablecast.transports.resolution.udp.store_names import StoreNames
from stablecast.transports.wire import lbmr, lbmr_extended
from tests.transports.resolution.virtual import MS, play

INFO = lbmr.ContextInfo
AT = "10.0.0.3:14567"
RELAY = "10.0.0.9:15380"
TOLD = INFO.ADDRESS | INFO.INSTANCE


def tells(address: str = "10.0.0.3", instance: bytes = b"store..1", name: str = "store-A") -> lbmr.ContextInfo:
    return INFO(flags=TOLD, port=14567, address=address, instance=instance, name=name)


ASKS = INFO(flags=INFO.QUERY, name="store-A")


def queries(done: list[tuple[int, NameEffect]]) -> list[int]:
    return [at for at, effect in done if effect == Tell(ASKS)]


@pytest.mark.rows("T-201", "T-205", "T-206")
def test_a_name_is_queried_until_it_is_answered() -> None:
    machine = StoreNames(b"instance")
    machine.receive(AskName("store-A"), 0)
    assert queries(play(machine, 4 * SECOND)) == [0, 100, 300, 700, 1500, 2500, 3500]
    machine.heard(tells(), 4 * SECOND)
    assert machine.take_effects() == [NameFound("store-A", AT)]
    assert queries(play(machine, 60 * SECOND)) == []


@pytest.mark.rows("P-205", "T-202", "T-204")
def test_a_store_announces_its_name_at_start_and_on_query() -> None:
    machine = StoreNames(b"store..1")
    machine.receive(AddName("store-A", AT), 0)
    answer = Tell(tells())
    assert machine.take_effects() == [answer]
    machine.heard(ASKS, SECOND)
    machine.heard(INFO(flags=INFO.QUERY, name="store-B"), SECOND)
    machine.heard(INFO(flags=INFO.QUERY), SECOND)
    assert machine.take_effects() == [answer]


def test_a_silent_store_is_lost_and_asked_for_again() -> None:
    """Any message of the store to this context keeps its name."""
    machine = StoreNames(b"instance")
    machine.receive(AskName("store-A"), 0)
    machine.heard(tells(), 0)
    machine.take_effects()
    machine.receive(NameAlive("store-A"), 30 * SECOND)
    machine.receive(NameAlive("store-B"), 30 * SECOND)
    assert machine.next_timeout() == 90 * SECOND
    done = play(machine, 90 * SECOND + 100 * MS)
    assert done[0] == (90_000, NameLost("store-A"))
    assert queries(done) == [90_000, 90_100]
    machine.heard(tells(), 91 * SECOND)
    assert machine.take_effects() == [NameFound("store-A", AT)]


@pytest.mark.rows("T-207")
def test_a_store_that_moved_is_reported() -> None:
    machine = StoreNames(b"instance")
    machine.receive(AskName("store-A"), 0)
    machine.heard(tells(), 0)
    machine.heard(tells(), SECOND)
    machine.take_effects()
    machine.heard(tells("10.0.0.4", b"store..2"), 2 * SECOND)
    assert machine.take_effects() == [
        Remark("store 'store-A' moved from 10.0.0.3:14567 to 10.0.0.4:14567"),
        Tell(ASKS),
        NameFound("store-A", "10.0.0.4:14567"),
    ]


@pytest.mark.rows("T-207")
def test_two_stores_of_one_name_are_reported_at_both_ends() -> None:
    asking, owner = StoreNames(b"instance"), StoreNames(b"store..1")
    asking.receive(AskName("store-A"), 0)
    for address, instance in (("10.0.0.3", b"store..1"), ("10.0.0.4", b"store..2")):
        asking.heard(tells(address, instance), 0)
    asking.take_effects()
    asking.heard(tells(), SECOND)
    (warning,) = asking.take_effects()
    assert isinstance(warning, Remark)
    assert warning.warning
    assert "several stores are called 'store-A', at 10.0.0.4:14567 and at 10.0.0.3:14567" in warning.text
    owner.receive(AddName("store-A", AT), 0)
    owner.take_effects()
    owner.heard(tells(), SECOND)
    assert owner.take_effects() == []
    owner.heard(tells("10.0.0.4", b"store..2"), SECOND)
    assert owner.take_effects() == [Remark("another store at 10.0.0.4:14567 is called 'store-A' as well", warning=True)]


@pytest.mark.rows("P-206", "T-207")
def test_two_stores_of_one_name_are_reported_once_and_the_name_stays() -> None:
    """While one of them lives, however often both answer."""
    asking, owner = StoreNames(b"instance"), StoreNames(b"store..1")
    asking.receive(AskName("store-A"), 0)
    owner.receive(AddName("store-A", AT), 0)
    other = tells("10.0.0.4", b"store..2")
    effects: list[NameEffect] = []
    for minute in range(10):
        for info in (tells(), other):
            asking.heard(info, minute * 50 * SECOND)
            owner.heard(info, minute * 50 * SECOND)
        asking.receive(NameAlive("store-A"), minute * 50 * SECOND)
        asking.handle_timeout(minute * 50 * SECOND)
        effects += [*asking.take_effects(), *owner.take_effects()]
    assert [effect.warning for effect in effects if isinstance(effect, Remark)] == [False, True, True]
    assert [effect.address for effect in effects if isinstance(effect, NameFound)] == [AT, "10.0.0.4:14567"]


def test_the_other_store_of_a_name_is_used_when_the_first_is_lost() -> None:
    asking = StoreNames(b"instance")
    asking.receive(AskName("store-A"), 0)
    for address, instance in (("10.0.0.3", b"store..1"), ("10.0.0.4", b"store..2"), ("10.0.0.3", b"store..1")):
        asking.heard(tells(address, instance), 0)
    asking.handle_timeout(60 * SECOND)
    asking.take_effects()
    asking.heard(tells(), 61 * SECOND)
    assert asking.take_effects() == [
        Remark("store 'store-A' moved from 10.0.0.4:14567 to 10.0.0.3:14567"),
        NameFound("store-A", AT),
    ]


def test_a_store_that_restarted_is_no_other_one() -> None:
    """Its address is the same, so nothing is reported, and nothing is queried."""
    asking, owner = StoreNames(b"instance"), StoreNames(b"store..1")
    asking.receive(AskName("store-A"), 0)
    owner.receive(AddName("store-A", AT), 0)
    asking.heard(tells(), 0)
    asking.take_effects()
    owner.take_effects()
    for info in (tells(instance=b"store..2"), tells(), tells(instance=b"store..2")):
        asking.heard(info, SECOND)
        owner.heard(info, SECOND)
    assert (asking.take_effects(), owner.take_effects()) == ([], [])


def test_former_contexts_of_a_name_are_bounded() -> None:
    asking, owner = StoreNames(b"instance"), StoreNames(b"store..1")
    asking.receive(AskName("store-A"), 0)
    owner.receive(AddName("store-A", AT), 0)
    for count in range(2 * module.MAX_RIVALS):
        info = tells(f"10.0.1.{count}", b"store.%02d" % count)
        asking.heard(info, count)
        owner.heard(info, count)
    assert len(asking.asked["store-A"].former) == len(owner.rivals) == module.MAX_RIVALS


def test_an_answer_without_query_or_address_is_ignored() -> None:
    machine = StoreNames(b"instance")
    machine.receive(AskName("store-A"), 0)
    machine.heard(tells(name="store-B"), 0)
    machine.heard(INFO(flags=0, name="store-A"), 0)
    machine.receive(ForgetName("store-A"), 0)
    machine.receive(ForgetName("store-A"), 0)
    machine.heard(tells(), 0)
    assert (machine.take_effects(), machine.next_timeout()) == ([], None)


def test_names_are_woken() -> None:
    """T26: a resolution request; resolved names, and names that are being queried, are unaffected."""
    store, source = StoreNames(b"store..1"), StoreNames(b"instance")
    store.receive(AddName("store-A", AT), 0)
    store.take_effects()
    store.wake(SECOND, queries=False, names=True)
    assert store.take_effects() == [Tell(tells())]
    for name in ("store-A", "store-B", "store-C"):
        source.receive(AskName(name), 0)
    source.heard(tells(), 0)
    play(source, 3 * SECOND)
    source.rounds.enough("store-B")
    source.wake(3 * SECOND, queries=True, names=False)
    asked = [(at, e.packet) for at, e in play(source, 4 * SECOND) if isinstance(e, Tell)]
    assert [(at, packet.name) for at, packet in asked if isinstance(packet, INFO)] == [
        (3000, "store-B"),
        (3100, "store-B"),
        (3300, "store-B"),
        (3500, "store-C"),
        (3700, "store-B"),
    ]


def test_misuse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = StoreNames(b"instance")
    machine.receive(AskName("store-A"), 0)
    machine.receive(AddName("store-A", AT), 0)
    monkeypatch.setattr(module, "MAX_NAMES", 1)
    for wrong, text in (
        (AskName(""), "topic name"),
        (AskName("x" * 231), "at most 230 bytes"),
        (AskName("store-B"), "at most 1 names"),
        (AddName("store-B", AT), "at most 1 names"),
        (AddName("store-A", "here"), "not an address"),
    ):
        with pytest.raises(MisuseError, match=text):
            machine.receive(wrong, 0)
    machine.receive(AskName("store-A"), 0)


def remote(
    flags: int, name: str = "store-A", domain: int = 7, host: str = "10.0.0.3", instance: bytes = b"store..1"
) -> lbmr_extended.RemoteRecord:
    """What a router says of a name."""
    options = (
        lbmr_extended.RemoteAddress(flags=0, domain=domain, address=host, port=14567),
        lbmr_extended.RemoteInstance(flags=0, instance=instance),
        lbmr_extended.RemoteOrigin(flags=0, domain=domain),
        lbmr_extended.RemoteName(flags=0, name=name.encode() + b"\0"),
    )
    return lbmr_extended.RemoteRecord(flags, options)


QUERY = lbmr_extended.RemoteRecord.QUERY


@pytest.mark.rows("T-202")
def test_a_store_in_another_domain_is_found_by_its_name() -> None:
    """In the own domain its address has no number."""
    for own, address in ((1, f"7:{AT}"), (7, AT)):
        machine = StoreNames(b"instance")
        machine.receive(AskName("store-A"), 0)
        machine.take_effects()
        machine.heard_of(remote(QUERY), own, 0)
        machine.heard_of(remote(0, name=""), own, 0)
        machine.heard_of(remote(0), own, 0)
        assert machine.take_effects() == [NameFound("store-A", address)]


def test_a_store_that_moves_to_another_domain_is_followed() -> None:
    machine = StoreNames(b"instance")
    machine.receive(AskName("store-A"), 0)
    machine.heard(tells(), 0)
    machine.take_effects()
    machine.heard_of(remote(0, instance=b"store..2"), 1, SECOND)
    assert NameFound("store-A", f"7:{AT}") in machine.take_effects()


def test_a_store_answers_a_router_that_asks_on_behalf_of_another_domain() -> None:
    machine = StoreNames(b"store..1")
    machine.receive(AddName("store-A", AT), 0)
    machine.take_effects()
    asked = lbmr_extended.RemoteRecord(QUERY, remote(QUERY).options[3:])
    machine.heard_of(asked, 7, 0)
    assert machine.take_effects() == [Tell(lbmr_extended.RemoteContexts.of(remote(0)))]
    machine.heard_of(lbmr_extended.RemoteRecord(QUERY, remote(QUERY, name="store-B").options[3:]), 7, 0)
    assert machine.take_effects() == []


def test_a_store_of_ones_name_in_another_domain_is_reported() -> None:
    machine = StoreNames(b"store..1")
    machine.receive(AddName("store-A", AT), 0)
    machine.take_effects()
    machine.heard_of(remote(0), 7, 0)
    assert machine.take_effects() == []
    machine.heard_of(remote(0, domain=8, instance=b"store..9"), 7, 0)
    (remark,) = machine.take_effects()
    assert isinstance(remark, Remark)
    assert f"8:{AT}" in remark.text


def test_a_context_believes_routers_about_other_domains_and_answers_them() -> None:
    """And what it answers is read by the public dissectors' layout."""
    context = ResolutionContext.over_relays(b"store..1", [RELAY])
    context.receive(AskName("store-B"), 0)
    context.receive(AddName("store-A", AT), 0)
    context.take_effects()

    def hear(kind: int, *records: lbmr_extended.RemoteRecord) -> list[ContextEffect]:
        trailer = lbmr.standard_options(b"router.1", kind, domain=7)
        packet = lbmr_extended.Packet(lbmr_extended.RemoteContexts.of(*records), trailer)
        context.receive(DatagramArrived(lbmr_extended.encode(packet), RELAY), 0)
        return context.take_effects()

    told = remote(0, name="store-B", domain=8, instance=b"store..2")
    assert not hear(lbmr.SourceType.APPLICATION, told)
    assert NameFound("store-B", f"8:{AT}") in hear(lbmr.SourceType.GATEWAY, told)
    (sent,) = hear(lbmr.SourceType.GATEWAY, remote(QUERY))
    assert isinstance(sent, SendDatagram)
    assert lbmr_extended.decode(sent.data).body == lbmr_extended.RemoteContexts.of(remote(0))
