"""Judge each state of a world by the guarantees, under their letters of `spec/guarantees.md`."""

from collections.abc import Callable, Iterable
from typing import Final

from stablecast.core.protocol.history import owner
from stablecast.lab.model.store_process import store_address
from stablecast.lab.prove.state import NOBODY, Loss, LossKind, State
from stablecast.lab.prove.world import ProofWorld

Rule = Callable[[ProofWorld, State], Loss | None]


def first_loss(world: ProofWorld, rules: Iterable[Rule], state: State) -> Loss | None:
    """Return what breaks the first of these rules."""
    return next(filter(None, (rule(world, state) for rule in rules)), None)


def _broken(rule: str, life: int, number: int, why: str) -> Loss:
    return Loss(LossKind.BROKEN, life, number, rule, why)


def lost(world: ProofWorld, state: State) -> Loss | None:
    """S3: a message that was reported stable is at some store, has its number alone, and is given up by no receiver.

    A receiver that may give up finds it at a store that it can ask.
    """
    if not state.safe:
        return None
    source, safe = world.source(state), sorted(state.safe)
    for life, number in safe:
        if not _held(world, state, world.indices, life, number):
            return Loss(LossKind.GONE, life, number)
        if _used_again(world, state, life, number):
            return Loss(LossKind.REUSED, life, number)
    if source is None or not source.active or not world.may_give_up(source.counting):
        return None
    left = (one for one in safe if not _held(world, state, source.counting, *one))
    return next((Loss(LossKind.UNRECOVERABLE, *one) for one in left), None)


def _held(world: ProofWorld, state: State, stores: Iterable[int], life: int, number: int) -> bool:
    return any(world.store(state, index).content.get(number) == life for index in stores)


def _used_again(world: ProofWorld, state: State, life: int, number: int) -> bool:
    """Return whether the life that sends uses the number of a message of another one."""
    source = world.source(state)
    return source is not None and source.active and owner(source.lives, number) not in (None, life)


def on_a_quorum(world: ProofWorld, state: State) -> Loss | None:
    """S1, S3: every message that was reported stable is on the disks of a quorum."""
    for life, number in state.safe:
        held = (store_address(at) for at in world.indices if world.store(state, at).disk.get(number) == life)
        if not world.judge.recoverable(held):
            source = world.source(state)
            rule = "S1" if source is not None and source.life == life else "S3"
            return _broken(rule, life, number, "a stable message is not on the disks of a quorum")
    return None


def on_a_disk(world: ProofWorld, state: State) -> Loss | None:
    """S3, while disks are lost: every message that was reported stable is on a disk."""
    for life, number in state.safe:
        if not any(world.store(state, index).disk.get(number) == life for index in world.indices):
            return _broken("S3", life, number, "a stable message is on no disk")
    return None


def used_once(world: ProofWorld, state: State) -> Loss | None:
    """S2: no number was stable for two lives, and no life that sends uses a stable number again."""
    numbers = [number for _, number in state.safe]
    for number in numbers:
        if numbers.count(number) > 1:
            return _broken("S2", max(life for life, one in state.safe if one == number), number, "stable in two lives")
    for life, number in state.safe:
        if _used_again(world, state, life, number):
            return _broken("S2", life, number, "the present life uses the number of a stable message")
    return None


def no_dead_message(world: ProofWorld, state: State) -> Loss | None:
    """S3: a store that knows where this life began serves no dead message of older lives in place of a stable one."""
    source = world.source(state)
    for index in world.indices if source is not None and state.safe else ():
        store = world.store(state, index)
        if source is None or not store.up or store.life != source.life:
            continue
        for life, number in state.safe:
            if number < store.resume and store.content.get(number, life) != life:
                return _broken("S3", life, number, "a store has a dead message in place of a stable one")
    return None


def synced_first(world: ProofWorld, state: State) -> Loss | None:
    """P1: a message that a store acknowledged is on its disk, unless the store learned of another life since."""
    source = world.source(state)
    if source is None:
        return None
    for index in world.indices:
        store = world.store(state, index)
        for number in source.acked[index] if store.record == source.life else ():
            if store.disk.get(number) != source.life:
                return _broken("P1", source.life, number, "a store acknowledged a message that is not on its disk")
    return None


def retained(world: ProofWorld, state: State) -> Loss | None:
    """C1: the source has a copy of every message that is not stable."""
    source = world.source(state)
    if source is None or not source.begun:
        return None
    for number in range(source.resume_point, min(source.oldest, source.next)):
        if (source.life, number) not in state.safe:
            return _broken("C1", source.life, number, "the source released a message that is not stable")
    return None


def in_order(world: ProofWorld, state: State) -> Loss | None:
    """D1: each number is delivered once in a session, in its turn."""
    receiver = world.receiver(state)
    return _broken("D1", receiver.life, -1, receiver.wrong) if receiver.wrong else None


def without_a_gap(world: ProofWorld, state: State) -> Loss | None:
    """D1: stable messages that a session begins behind were consumed before, or were reported lost."""
    receiver = world.receiver(state)
    if not receiver.active:
        return None
    return _unread(world, state, "D1", receiver.start, "a session begins behind a message that nobody consumed")


def nothing_unread(world: ProofWorld, state: State) -> Loss | None:
    """A1: stable numbers that a store counts as acknowledged were consumed, or were reported lost."""
    known = max([store.consumed for store in (world.store(state, index) for index in world.indices)], default=-1)
    return _unread(world, state, "A1", known + 1, "a store counts a message as consumed that nobody consumed")


def _unread(world: ProofWorld, state: State, rule: str, stop: int, why: str) -> Loss | None:
    receiver = world.receiver(state)
    for life, number in state.safe:
        if number < stop and (life, number) not in receiver.read and (life, number) not in receiver.lost:
            return _broken(rule, life, number, why)
    return None


def sought(world: ProofWorld, state: State) -> Loss | None:
    """D2: no stable message is given up that every store holds at which the receiver is registered."""
    receiver = world.receiver(state)
    for life, number in state.safe if receiver.lost_now and receiver.counting else ():
        held = [world.store(state, index).content.get(number) == life for index in receiver.counting]
        if number in receiver.lost_now and all(held):
            return _broken("D2", life, number, "a receiver gives up a message that each of its stores holds")
    return None


def delivered_as_sent(world: ProofWorld, state: State) -> Loss | None:
    """D1: a number that was stable is delivered as the message of its life."""
    receiver = world.receiver(state)
    for life, number in state.safe:
        others = [one for one, of in receiver.read if of == number and one > life]
        if others:
            return _broken("D1", life, number, "a receiver consumed another message under a stable number")
    return None


def one_process(world: ProofWorld, state: State) -> Loss | None:
    """R6: of two sources of one context, the earlier one never sends once the later one did."""
    source, other = world.source(state), None if state.aside == NOBODY else world.sources.views[state.aside]
    if source is None or other is None or not state.doubled:
        return None
    if source.life < other.life and source.active and other.begun:
        return _broken("R6", source.life, -1, "an earlier source of a context has the registrations again")
    return None


PROVED: Final[tuple[Rule, ...]] = (lost,)
"""What `stablecast prove` judges."""
ALWAYS: Final[tuple[Rule, ...]] = (synced_first, retained, in_order)
RECEIVED: Final[tuple[Rule, ...]] = (without_a_gap, nothing_unread, sought, delivered_as_sent)
QUORUM: Final[tuple[Rule, ...]] = (on_a_quorum, used_once, no_dead_message, lost, one_process, *ALWAYS, *RECEIVED)
WIPED: Final[tuple[Rule, ...]] = (on_a_disk, used_once, no_dead_message, retained, in_order, *RECEIVED)
ROUND_ROBIN: Final[tuple[Rule, ...]] = ALWAYS


def letters(rules: Iterable[Rule]) -> list[str]:
    """Return the letters of rules, each once.

    >>> letters(ROUND_ROBIN)
    ['C1', 'D1', 'P1']
    """
    return sorted(
        {letter for rule in rules for letter in (rule.__doc__ or "").partition(":")[0].split(", ") if len(letter) == 2}
    )
