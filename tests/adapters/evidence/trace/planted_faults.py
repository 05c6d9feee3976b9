"""The planted faults (`fault_injection`): the endpoint, its fault, and the rules that the judges report."""

from collections.abc import Callable
from typing import Any, Final

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import RegistrationComplete, Stable, StableFlag, UnrecoverableLoss
from stablecast.core.protocol.inputs import Sent
from stablecast.core.protocol.messages import ConsumptionAck, Registered, Role, StableAck
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.settings import AckMode
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.setup import SOURCE, STORES, WorldSetup
from tests.adapters.evidence.trace.fault_injection import Lie, after, at, busy, extended, hearing, shift

STABLE: Final = StableFlag.INTRAGROUP | StableFlag.INTERGROUP | StableFlag.STABLE
AWAY: Final = Fault(1500, Kind.KILL, SOURCE, 60, amount=1)
SLOW: Final = tuple(Fault(800, Kind.SLOW, store, 3000) for store in STORES[1:])
PARTED: Final = (Fault(1000, Kind.CUT, SOURCE, other=STORES[1], span_ms=2900), SLOW[1])
ENOUGH: Final = 9999
"""A ticket that no machine gets to."""


# Sources.


def calls_stable(first: int, last: int) -> Notify:
    return Notify(Stable(first, last, 0, STABLE))


def is_stable(machine: Any, event: Any) -> bool:
    return busy(machine) and StableFlag.STABLE in event.flags


def holders(machine: Any, number: int) -> int:
    return sum(number in held for held in machine.window.acked)


def newly_held_by(count: int) -> Callable[[Any, Any], bool]:
    return lambda machine, ack: busy(machine) and holders(machine, extended(machine, ack.last)) == count


def stable_now(machine: Any, ack: Any) -> Notify:
    return calls_stable(extended(machine, ack.last), extended(machine, ack.last))


def life_number(machine: Any) -> int:
    return int(machine.config.incarnation & 0xFFFF_FFFF)


def from_the_other(machine: Any, ack: StableAck) -> StableAck:
    """Return an acknowledgement that gives store 1 the numbers of store 0."""
    wire = serial.wire(machine.window.acked[0].last)
    return attrs.evolve(ack, store_index=1, first=wire, last=wire)


def half_held(machine: Any, ack: StableAck) -> bool:
    newest = machine.window.acked[0].last
    return busy(machine) and ack.store_index == 0 and newest is not None and holders(machine, newest) == 1


def second_life(machine: Any, *_: Any) -> bool:
    """Return whether this is the second process of the source (`Cluster._spawn_source` counts them)."""
    return life_number(machine) > 1


# Receivers.


def first_left_out(_: Any, run: fx.Deliver) -> fx.Deliver:
    return attrs.evolve(run, first=run.first + 1, skip=run.skip + 1, count=run.count - 1)


def twice(_: Any, run: fx.Deliver) -> list[fx.Deliver]:
    return [attrs.evolve(run, done=False), run]


def dropped(_: Any, run: Any) -> list[Effect]:
    return [fx.Discard(run.token)] if run.done else []


# Stores.


def reg_id(machine: Any) -> int:
    return int(next(iter(machine.repositories)))


def source_of(machine: Any) -> fx.Client:
    client: fx.Client = machine.clients.records[reg_id(machine)].client
    return client


def acknowledge(machine: Any, write: fx.PersistMessages) -> list[Effect]:
    source = source_of(machine)
    wire = serial.wire(write.first), serial.wire(write.first + write.count - 1)
    return [write, Send(source.reply_to, StableAck(source.store_index, write.incarnation, *wire))]


def grants_at_once(machine: Any, write: fx.PersistClient) -> list[Effect]:
    client = write.client
    granted = Registered(
        client.role, client.store_index, 1, client.reg_id, client.incarnation, False, 0, serial.wire(-1), 1000, 0
    )
    return [write, Send(client.reply_to, granted)]


def is_new(machine: Any, write: fx.PersistClient) -> bool:
    return not write.client.has_acknowledged and write.client.role is Role.SOURCE


def other_receiver(machine: Any, granted: Registered) -> int | None:
    return next(
        (
            one
            for one, known in sorted(machine.clients.records.items())
            if known.client.role is Role.RECEIVER and one != granted.reg_id
        ),
        None,
    )


LIES: list[Lie] = [
    Lie(
        "calls stable what it has just sent",
        Role.SOURCE,
        "S1",
        after(Sent, lambda _, sent: calls_stable(sent.first, sent.first + sent.count - 1), busy),
    ),
    Lie("calls more stable than is", Role.SOURCE, "S1", at(Stable, shift("last", 5), is_stable)),
    Lie(
        "calls stable what one store of three has",
        Role.SOURCE,
        "S1",
        after(StableAck, stable_now, newly_held_by(1)),
        faults=SLOW,
    ),
    Lie(
        "calls stable what two stores have where all three must",
        Role.SOURCE,
        "S1",
        after(StableAck, stable_now, newly_held_by(2)),
        setup=WorldSetup(rules=GroupRules((3,), Intragroup.ALL)),
        faults=SLOW,
    ),
    Lie(
        "calls stable what one group has where two of three must",
        Role.SOURCE,
        "S1",
        after(StableAck, stable_now, newly_held_by(1)),
        setup=WorldSetup(rules=GroupRules((1, 1, 1), Intragroup.QUORUM, Intergroup.MAJORITY)),
        faults=SLOW,
    ),
    Lie(
        "calls stable what one group has where all must",
        Role.SOURCE,
        "S1",
        after(StableAck, stable_now, newly_held_by(2)),
        setup=WorldSetup(rules=GroupRules((1, 1, 1), Intragroup.QUORUM, Intergroup.ALL)),
        faults=SLOW,
    ),
    Lie(
        "calls stable in turns what no store has",
        Role.SOURCE,
        "S1",
        after(Sent, lambda _, sent: calls_stable(sent.first, sent.first + sent.count - 1), busy),
        setup=WorldSetup(turns=True),
    ),
    Lie(
        "counts on an acknowledgement that was never given",
        Role.SOURCE,
        "S1",
        mishears=hearing(StableAck, from_the_other, half_held),
        faults=PARTED,
        judged="P6",
    ),
    Lie(
        "calls stable what an earlier life had",
        Role.SOURCE,
        "S2",
        at(Stable, shift("first", -3), lambda m, one: is_stable(m, one) and second_life(m)),
        faults=(AWAY,),
    ),
    Lie(
        "begins with numbers of an earlier life",
        Role.SOURCE,
        "S2",
        at(RegistrationComplete, shift("number", -5), second_life),
        faults=(AWAY,),
        judged="replay",
    ),
    Lie(
        "lets go of what it has just sent",
        Role.SOURCE,
        "C1",
        after(Sent, lambda _, sent: fx.Release(sent.first + sent.count), busy),
    ),
    Lie("lets go of more than is stable", Role.SOURCE, "C1", at(fx.Release, shift("number", 5), busy)),
    Lie("passes a run over", Role.RECEIVER, "D1", at(fx.Deliver, dropped, busy), judged="replay"),
    Lie("delivers a run twice", Role.RECEIVER, "D1", at(fx.Deliver, twice, busy)),
    Lie(
        "delivers a run twice in arrival order",
        Role.RECEIVER,
        "D1",
        at(fx.Deliver, twice, busy),
        setup=WorldSetup(arrival=True),
    ),
    Lie(
        "leaves out the first message of a run",
        Role.RECEIVER,
        "D1",
        at(fx.Deliver, first_left_out, lambda m, one: busy(m) and one.count > 1),
    ),
    Lie("gives messages the numbers of the next ones", Role.RECEIVER, "D1", at(fx.Deliver, shift("first", 1), busy)),
    Lie("gives messages the numbers of those before", Role.RECEIVER, "D1", at(fx.Deliver, shift("first", -1), busy)),
    Lie(
        "begins too far ahead",
        Role.RECEIVER,
        "D1",
        at(RegistrationComplete, shift("number", 5)),
        setup=WorldSetup(late_ms=2000),
        judged="replay",
    ),
    Lie(
        "calls lost what can be had",
        Role.RECEIVER,
        "S3",
        at(
            fx.Deliver,
            lambda m, one: [*dropped(m, one), Notify(UnrecoverableLoss(one.first, one.first + one.count - 1))],
            lambda m, one: one.recovered,
        ),
        setup=WorldSetup(late_ms=2000),
        judged="replay",
    ),
    Lie("acknowledges what it has not consumed", Role.RECEIVER, "A1", at(ConsumptionAck, shift("number", 3), busy)),
    Lie(
        "acknowledges for the application what that has not acknowledged",
        Role.RECEIVER,
        "A1",
        at(ConsumptionAck, shift("number", 3), busy),
        setup=WorldSetup(ack_mode=AckMode.EXPLICIT),
    ),
    Lie("acknowledges less than before", Role.RECEIVER, "A1", at(ConsumptionAck, shift("number", -20), busy)),
    Lie("acknowledges what waits for the disk", Role.STORE, "P1", at(fx.PersistMessages, acknowledge, busy)),
    Lie("acknowledges more than it has", Role.STORE, "P1", at(StableAck, shift("last", 5), busy)),
    Lie(
        "acknowledges more than it has in memory",
        Role.STORE,
        "P1",
        at(StableAck, shift("last", 5), busy),
        setup=WorldSetup(memory=True),
    ),
    Lie(
        "forgets to write a run that it acknowledges",
        Role.STORE,
        "P1",
        at(fx.PersistMessages, dropped, busy),
        judged="replay",
    ),
    Lie(
        "writes less than it acknowledges",
        Role.STORE,
        "P1",
        at(fx.PersistMessages, shift("count", -1), lambda m, one: busy(m) and one.count > 1),
        judged="replay",
    ),
    Lie(
        "writes messages as those of another life",
        Role.STORE,
        "P1",
        at(fx.PersistMessages, shift("incarnation", 1 << 32), busy),
        judged="replay",
    ),
    Lie("grants before it has written down to whom", Role.STORE, "R2", at(fx.PersistClient, grants_at_once, is_new)),
    Lie("grants to a life that never asked", Role.STORE, "R2", at(Registered, shift("incarnation", 1 << 32))),
    Lie(
        "gives away a RegID that is held",
        Role.STORE,
        "R1",
        at(
            Registered,
            lambda m, one: attrs.evolve(one, reg_id=other_receiver(m, one)),
            lambda m, one: one.role is Role.RECEIVER and other_receiver(m, one) is not None,
        ),
        setup=WorldSetup(late_ms=1500),
        judged="replay",
    ),
    Lie(
        "cuts what is stable", Role.STORE, "S3", after(ConsumptionAck, lambda m, _: fx.Cut(ENOUGH, reg_id(m), 10), busy)
    ),
    Lie(
        "forgets a source that is there",
        Role.STORE,
        "S3",
        after(ConsumptionAck, lambda m, _: fx.Forget(ENOUGH, Role.SOURCE, reg_id(m)), busy),
        judged="replay",
    ),
    Lie(
        "lets go of what paced receivers have not consumed",
        Role.STORE,
        "P2",
        after(ConsumptionAck, lambda m, _: fx.Reclaim(ENOUGH, reg_id(m), m.repositories[reg_id(m)].newest + 1), busy),
        setup=WorldSetup(paced=True),
        faults=SLOW,
    ),
    Lie(
        "keeps a proxy for a source that is back",
        Role.STORE,
        "E8",
        at(fx.StopProxy, lambda *_: []),
        setup=WorldSetup(proxies=True),
        faults=(attrs.evolve(AWAY, span_ms=2000),),
        judged="replay",
    ),
]
