"""Print a run for people: actions, contents of the stores, reports to the application, and possible remedies.

Stores are A, B, C in the order of the configuration. Message 0 of the first life is 0, of the second 0', of the third
0''. Remedies are found by trial: the same run is repeated with one change.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from stablecast.core.protocol.events import Overtaken, QuorumLost, RegistrationComplete
from stablecast.core.protocol.quorum import Consensus, Intergroup
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.setting_relations import relations
from stablecast.core.protocol.settings import StoreBehavior
from stablecast.lab.prove.bounds import ProofFault
from stablecast.lab.prove.instance import Instance
from stablecast.lab.prove.rules import lost
from stablecast.lab.prove.search import FoundRun, ends_well
from stablecast.lab.prove.sources import Told
from stablecast.lab.prove.state import NOBODY, Action, Deed, Loss, LossKind, State
from stablecast.lab.prove.world import ProofWorld

ALONE = (Repair.EVERY_GROUP, Repair.ONE_LIFE, Repair.HOLES)
"""The repairs that matter here."""


@attrs.frozen
class StoryStep:
    """Describe an action, the reports to the application, and the contents of each store afterwards."""

    action: str
    told: tuple[str, ...]
    stores: dict[str, str]


def label(index: int) -> str:
    """Return the name of a store.

    >>> label(0), label(25), label(26)
    ('A', 'Z', 'A1')
    """
    return chr(ord("A") + index % 26) + (str(index // 26) if index >= 26 else "")


def message(life: int, number: int) -> str:
    return f"{number}{chr(39) * (life - 1)}"


def legend(instance: Instance) -> list[str]:
    return [
        f"{label(index)} = {store.name or store.address}, group {store.group}"
        for index, store in enumerate(instance.source.stores)
    ]


def steps(world: ProofWorld, found: FoundRun) -> list[StoryStep]:
    told: list[StoryStep] = []
    state = world.start()
    for action in found.run:
        draft = world.do(state, action)
        state = draft.done()
        reports = tuple(dict.fromkeys(_report(event, life) for life, event in draft.told))
        told.append(StoryStep(_action(world, state, action), reports, holdings(world, state)))
    return told


def lines(told: Iterable[StoryStep]) -> Iterator[str]:
    for number, step in enumerate(told, 1):
        yield f"{number:3}. {step.action}"
        yield from (f"       reported to the application: {text}" for text in step.told)
        yield "       " + "   ".join(f"{name}: {held}" for name, held in step.stores.items())


def holdings(world: ProofWorld, state: State) -> dict[str, str]:
    """Return what each store has; unsynced messages stand in brackets."""
    told = {}
    for index in world.indices:
        store = world.store(state, index)
        names = []
        for number, life in sorted(store.content.items()):
            name = message(life, number)
            names.append(f"({name})" if number in store.unsynced else name)
        told[label(index)] = " ".join(names or ["-"]) + ("" if store.up else " (away)")
    return told


def _action(world: ProofWorld, state: State, action: Action) -> str:
    deed, indices = action
    names = _names(indices)
    match deed:
        case Deed.BEGIN:
            return f"the source {'starts' if state.lives == 1 else 'returns'} and {_reaches(world, indices)}"
        case Deed.TAKE_OVER:
            return f"the source is partitioned; another process with its RegID starts and {_reaches(world, indices)}"
        case Deed.COME_BACK:
            return f"the partitioned process returns and {_reaches(world, indices)}"
        case Deed.DOUBLE:
            return "the context makes a second source with the same RegID"
        case Deed.ALTERNATE:
            return "the other source of the context registers again"
        case Deed.STOP:
            verb = "loses" if len(indices) == 1 else "lose"
            return "the source crashes" + (f"; {names} {verb} what is not synced" if indices else "")
        case Deed.SEND:
            source = world.source(state)
            assert source is not None
            lost = ", ".join("the receiver" if index < 0 else label(index) for index in indices)
            return f"the source sends {message(source.life, source.next - 1)}" + (f", lost for {lost}" if lost else "")
    return f"{names or 'the receiver'} {deed}"


def _reaches(world: ProofWorld, indices: tuple[int, ...]) -> str:
    others = [index for index in world.indices if index not in indices]
    away = f"; {_names(others)} cannot be reached" if others else ""
    return f"reaches {_names(indices)}{away}"


def _names(indices: tuple[int, ...] | list[int]) -> str:
    return ", ".join(label(index) for index in indices)


def _report(event: Told, life: int) -> str:
    match event:
        case RegistrationComplete():
            return f"registration complete, the next message is {message(life, event.number)}"
        case QuorumLost():
            return "too few stores are registered: sending is refused"
        case Overtaken():
            return "another process with the same RegID took over: this source has ended"
        case _:
            numbers = range(event.first, event.last + 1)
            return f"stable: {', '.join(message(life, number) for number in numbers)}"


def ending(found: FoundRun) -> str:
    loss = found.loss
    if loss is None:
        return (
            "STALL: even if every store comes back and everything is synced, nothing that is sent becomes stable again"
        )
    name = message(loss.life, loss.number)
    match loss.kind:
        case LossKind.BROKEN:
            return loss.why
        case LossKind.GONE:
            return f"LOSS: {name} was reported stable, and no store has it any more"
        case LossKind.REUSED:
            return (
                f"LOSS: {name} was reported stable, and the source will use its number again: "
                "stores and receivers mistake another message for it, or delete it"
            )
        case _:
            return f"LOSS: {name} was reported stable; a receiver finds it at no reachable store, and gives it up"


def remedies(instance: Instance, found: FoundRun) -> list[str]:
    """Return the changes that each prevent this run, and those with which the source would not start."""
    told = []
    for text, changed in _candidates(instance):
        refused = [finding.text for finding in relations(changed.source) if finding.fatal]
        if refused:
            told.append(f"{text}: the source does not start, {'; '.join(refused)}")
        elif harmless(changed, found):
            told.append(f"{text}: this run is harmless")
    return told


def _candidates(instance: Instance) -> Iterator[tuple[str, Instance]]:
    source = instance.source
    if source.consensus is not Consensus.HIGHEST:
        highest = attrs.evolve(source, consensus=Consensus.HIGHEST)
        yield "ume_consensus_sequence_number_behavior highest", attrs.evolve(instance, source=highest)
    if source.behavior is StoreBehavior.RR:
        yield "ume_store_behavior qc", attrs.evolve(instance, source=attrs.evolve(source, behavior=StoreBehavior.QC))
    if len(source.groups.sizes) > 1:
        for rule in (Intergroup.MAJORITY, Intergroup.ALL):
            groups = attrs.evolve(source.groups, intergroup=rule)
            changed = attrs.evolve(instance, source=attrs.evolve(source, groups=groups))
            if rule is not source.groups.intergroup:
                yield f"ume_retention_intergroup_stability_behavior {rule.name.lower()}", changed
    if ProofFault.WIPE in (instance.bounds.faults or ()) and not instance.refill:
        yield "allow-refill 1 at each store", attrs.evolve(instance, refill=True)
    for repair in (*ALONE, Repair.ALL):
        if repair not in source.repairs:
            name = "profile safe" if repair is Repair.ALL else f"the repair {repair.name} of profile safe"
            yield name, _repaired(instance, repair)


def _repaired(instance: Instance, repair: Repair) -> Instance:
    source = attrs.evolve(instance.source, repairs=instance.source.repairs | repair)
    if repair is Repair.ALL:
        source = attrs.evolve(source, consensus=Consensus.HIGHEST)
    return attrs.evolve(
        instance,
        source=source,
        store_repairs=instance.store_repairs | repair,
        receiver_repairs=instance.receiver_repairs | repair,
    )


def harmless(instance: Instance, found: FoundRun) -> bool:
    """Return whether the same run is harmless in another instance. Actions that are not possible there are skipped."""
    world = ProofWorld.create(instance)
    state = world.start()
    for action in found.run:
        if possible(world, state, action):
            state = world.do(state, action).done()
            if lost(world, state) is not None:
                return False
    return ends_well(world, state)


def possible(world: ProofWorld, state: State, action: Action) -> bool:
    deed, indices = action
    source = world.source(state)
    match deed:
        case Deed.BEGIN:
            return source is None
        case Deed.STOP:
            return source is not None
        case Deed.TAKE_OVER | Deed.DOUBLE:
            return source is not None and source.begun and state.aside == NOBODY
        case Deed.COME_BACK:
            return state.aside != NOBODY and not state.doubled and (source is None or source.begun)
        case Deed.ALTERNATE:
            return state.doubled
        case Deed.INFORM:
            return world.uninformed(state, *indices)
        case Deed.SEND:
            return source is not None and source.may_send
        case Deed.FILL:
            return world.asks(state, *indices)
        case Deed.REFILL:
            return world.offered(state, *indices)
        case Deed.WIPE:
            return world.may_wipe(state, *indices)
        case Deed.RETURN:
            return not world.store(state, *indices).up
        case _:
            return world.store(state, *indices).up


def loss_json(loss: Loss | None) -> dict[str, Any] | None:
    return None if loss is None else {"kind": loss.kind, "message": message(loss.life, loss.number)}
