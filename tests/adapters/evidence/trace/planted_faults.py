"""The planted faults (`fault_injection`): the endpoint, its fault, and the rules that the judges report."""

from collections.abc import Callable
from functools import partial
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


source, receiver, store = (partial(Lie, role) for role in (Role.SOURCE, Role.RECEIVER, Role.STORE))

LIES: list[Lie] = [
    source(
        "calls stable what it has just sent",
        "S1",
        after(Sent, lambda _, sent: calls_stable(sent.first, sent.first + sent.count - 1), busy),
    ),
    source("calls more stable than is", "S1", at(Stable, shift("last", 5), is_stable)),
    source(
        "calls stable what one store of three has", "S1", after(StableAck, stable_now, newly_held_by(1)), faults=SLOW
    ),
    source(
        "calls stable what two stores have where all three must",
        "S1",
        after(StableAck, stable_now, newly_held_by(2)),
        setup=WorldSetup(rules=GroupRules((3,), Intragroup.ALL)),
        faults=SLOW,
    ),
    source(
        "calls stable what one group has where two of three must",
        "S1",
        after(StableAck, stable_now, newly_held_by(1)),
        setup=WorldSetup(rules=GroupRules((1, 1, 1), Intragroup.QUORUM, Intergroup.MAJORITY)),
        faults=SLOW,
    ),
    source(
        "calls stable what one group has where all must",
        "S1",
        after(StableAck, stable_now, newly_held_by(2)),
        setup=WorldSetup(rules=GroupRules((1, 1, 1), Intragroup.QUORUM, Intergroup.ALL)),
        faults=SLOW,
    ),
    source(
        "calls stable in turns what no store has",
        "S1",
        after(Sent, lambda _, sent: calls_stable(sent.first, sent.first + sent.count - 1), busy),
        setup=WorldSetup(turns=True),
    ),
    source(
        "counts on an acknowledgement that was never given",
        "S1",
        mishears=hearing(StableAck, from_the_other, half_held),
        faults=PARTED,
        judged="P6",
    ),
    source(
        "calls stable what an earlier life had",
        "S2",
        at(Stable, shift("first", -3), lambda m, one: is_stable(m, one) and second_life(m)),
        faults=(AWAY,),
    ),
    source(
        "begins with numbers of an earlier life",
        "S2",
        at(RegistrationComplete, shift("number", -5), second_life),
        faults=(AWAY,),
        judged="replay",
    ),
    source(
        "lets go of what it has just sent", "C1", after(Sent, lambda _, sent: fx.Release(sent.first + sent.count), busy)
    ),
    source("lets go of more than is stable", "C1", at(fx.Release, shift("number", 5), busy)),
    receiver("passes a run over", "D1", at(fx.Deliver, dropped, busy), judged="replay"),
    receiver("delivers a run twice", "D1", at(fx.Deliver, twice, busy)),
    receiver(
        "delivers a run twice in arrival order", "D1", at(fx.Deliver, twice, busy), setup=WorldSetup(arrival=True)
    ),
    receiver(
        "leaves out the first message of a run",
        "D1",
        at(fx.Deliver, first_left_out, lambda m, one: busy(m) and one.count > 1),
    ),
    receiver("gives messages the numbers of the next ones", "D1", at(fx.Deliver, shift("first", 1), busy)),
    receiver("gives messages the numbers of those before", "D1", at(fx.Deliver, shift("first", -1), busy)),
    receiver(
        "begins too far ahead",
        "D1",
        at(RegistrationComplete, shift("number", 5)),
        setup=WorldSetup(late_ms=2000),
        judged="replay",
    ),
    receiver(
        "calls lost what can be had",
        "S3",
        at(
            fx.Deliver,
            lambda m, one: [*dropped(m, one), Notify(UnrecoverableLoss(one.first, one.first + one.count - 1))],
            lambda m, one: one.recovered,
        ),
        setup=WorldSetup(late_ms=2000),
        judged="replay",
    ),
    receiver("acknowledges what it has not consumed", "A1", at(ConsumptionAck, shift("number", 3), busy)),
    receiver(
        "acknowledges for the application what that has not acknowledged",
        "A1",
        at(ConsumptionAck, shift("number", 3), busy),
        setup=WorldSetup(ack_mode=AckMode.EXPLICIT),
    ),
    receiver("acknowledges less than before", "A1", at(ConsumptionAck, shift("number", -20), busy)),
    store("acknowledges what waits for the disk", "P1", at(fx.PersistMessages, acknowledge, busy)),
    store("acknowledges more than it has", "P1", at(StableAck, shift("last", 5), busy)),
    store(
        "acknowledges more than it has in memory",
        "P1",
        at(StableAck, shift("last", 5), busy),
        setup=WorldSetup(memory=True),
    ),
    store("forgets to write a run that it acknowledges", "P1", at(fx.PersistMessages, dropped, busy), judged="replay"),
    store(
        "writes less than it acknowledges",
        "P1",
        at(fx.PersistMessages, shift("count", -1), lambda m, one: busy(m) and one.count > 1),
        judged="replay",
    ),
    store(
        "writes messages as those of another life",
        "P1",
        at(fx.PersistMessages, shift("incarnation", 1 << 32), busy),
        judged="replay",
    ),
    store("grants before it has written down to whom", "R2", at(fx.PersistClient, grants_at_once, is_new)),
    store("grants to a life that never asked", "R2", at(Registered, shift("incarnation", 1 << 32))),
    store(
        "gives away a RegID that is held",
        "R1",
        at(
            Registered,
            lambda m, one: attrs.evolve(one, reg_id=other_receiver(m, one)),
            lambda m, one: one.role is Role.RECEIVER and other_receiver(m, one) is not None,
        ),
        setup=WorldSetup(late_ms=1500),
        judged="replay",
    ),
    store("cuts what is stable", "S3", after(ConsumptionAck, lambda m, _: fx.Cut(ENOUGH, reg_id(m), 10), busy)),
    store(
        "forgets a source that is there",
        "S3",
        after(ConsumptionAck, lambda m, _: fx.Forget(ENOUGH, Role.SOURCE, reg_id(m)), busy),
        judged="replay",
    ),
    store(
        "lets go of what paced receivers have not consumed",
        "P2",
        after(ConsumptionAck, lambda m, _: fx.Reclaim(ENOUGH, reg_id(m), m.repositories[reg_id(m)].newest + 1), busy),
        setup=WorldSetup(paced=True),
        faults=SLOW,
    ),
    store(
        "keeps a proxy for a source that is back",
        "E8",
        at(fx.StopProxy, lambda *_: []),
        setup=WorldSetup(proxies=True),
        faults=(attrs.evolve(AWAY, span_ms=2000),),
        judged="replay",
    ),
]
