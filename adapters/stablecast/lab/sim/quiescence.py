"""Decide whether a calm world is settled; if not, name the rule and the process that does not progress."""

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role, StoreMemory
from stablecast.core.protocol.quorum import quorum_of
from stablecast.lab.sim.cluster import Cluster
from stablecast.lab.sim.facts import without
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.setup import RECEIVERS, SOURCE, STORES
from stablecast.lab.sim.source import SourceProcess
from stablecast.lab.sim.store import StoreProcess
from stablecast.store.client_records import clients_of

Trouble = tuple[str, str]
"""Rule and text of a violation."""


def trouble(cluster: Cluster) -> Trouble | None:
    """Return what is not settled; None: everything sent is stable and delivered, and leaving clients have left."""
    if cluster.checkers.facts.farewell:
        return _farewell(cluster)
    return (
        _waiting(cluster) or (None if cluster.deserted else _source(cluster)) or _receivers(cluster) or proxied(cluster)
    )


def lacking(cluster: Cluster) -> Trouble | None:
    """Return which store does not hold a stable message long after the last fault; None: all stores are healed.

    Every store with which the source is registered holds every stable message, unless it released the message by a
    rule, its memory is full, or no other store has it any more. Stores of an earlier release do not refill.
    """
    facts, source, setup = cluster.checkers.facts, cluster.source, cluster.setup
    if facts.farewell or source is None or setup.turns or not setup.refill or not setup.rules.sizes:
        return None
    if not source.machine.can_send:  # A lease that ends just now takes all stores away for a moment.
        return "L1", f"{source.name} is registered with too few stores long after the last fault"
    there = [STORES[index] for index, one in source.machine.status.registrations.items() if one.counts]
    released, full = cluster.checkers.stores.released_at, cluster.checkers.stores.full
    for number, life in facts.stable.items():
        missing = [store for store in there if setup.refills(store) and not facts.holds(store, life, number)]
        missing = [store for store in missing if not (released(store, number) or full(store))]
        if missing and any(facts.has(store, life, number) and not released(store, number) for store in STORES):
            return "S3", f"{missing[0]} never got number {number} of life {life:#x} back, which is stable"
    return _asking_in_vain(cluster)


def _asking_in_vain(cluster: Cluster) -> Trouble | None:
    """Return which store asks others for a message that it holds."""
    for process in cluster.processes.values():
        if isinstance(process, StoreProcess) and process.alive:
            for reg_id, one in process.machine.status.repositories.items():
                if any(one.held.within(first, stop) for first, stop in one.lacking_numbers):
                    return "L1", f"{process.name} asks for messages of source {reg_id} that it holds"
    return None


def asked_in_vain(cluster: Cluster) -> int:
    """Return the most numbers that a store asks others for, and that no store holds: their limits let them go."""
    stores = [one for one in cluster.processes.values() if isinstance(one, StoreProcess) and one.alive]
    known = [one for process in stores for one in process.machine.status.repositories.values()]
    held = [one.held for one in known]
    vain = (sum(high - low for low, high in without(one.lacking_numbers, held)) for one in known)
    return max(vain, default=0)


def _waiting(cluster: Cluster) -> Trouble | None:
    """Name a store that grants nothing yet, because clients may count on grants that it does not know."""
    for process in cluster.processes.values():
        if isinstance(process, StoreProcess) and process.alive and process.waits:
            return "L1", f"{process.name} grants nothing long after it started"
    return None


def _source(cluster: Cluster) -> Trouble | None:
    source = cluster.source
    if source is not None and (source.idle or _never_confirmed(cluster, source)):
        return None
    state = "nobody"
    if source is not None:
        machine, registrations = source.machine, source.machine.status.registrations.values()
        stores = ", ".join(one.state.name for one in registrations)
        flight = f"{machine.in_flight_messages} of {machine.oldest_number}..{machine.next_number - 1} are not settled"
        state = f"{machine.state.name}, stores {stores}, {flight}, {source.wanted} unsent"
    return "L1", f"not everything sent is stable long after the last fault: {state}"


def _never_confirmed(cluster: Cluster, source: SourceProcess) -> bool:
    """Return whether the source waits only for confirmations that nobody can repeat (P-349).

    A receiver's process consumed the messages, acknowledged them to stores, and ended before its confirmation reached
    the source. The next process begins after them, and cannot know which of them were consumed.
    """
    machine, life = source.machine, source.config.incarnation
    waiting = machine.status.settled.missing(machine.oldest_number, machine.next_number)
    stable = cluster.checkers.facts.stable_lives.get(life, RangeSet())
    if not source.calm or without(waiting, [stable]):
        return False
    ended = [_consumed_before_its_end(cluster, receiver, life) for receiver in RECEIVERS]
    counted = source.machine.status.confirmed
    for number in (number for first, stop in waiting for number in range(first, stop)):
        able = sum(number not in numbers for numbers in ended)
        # All others have confirmed the message.
        if able >= cluster.setup.unique or (able and number not in counted[able - 1]):
            return False
    return True


def _consumed_before_its_end(cluster: Cluster, receiver: str, life: int) -> RangeSet:
    """Return the numbers that earlier processes of a receiver consumed, and that its present one begins after."""
    reading, process = cluster.checkers.receivers, cluster.processes[receiver]
    session = reading.sessions.get((process.name, life))
    consumed = reading.ledgers[receiver].consumed.get(life, RangeSet())
    if session is None or session.begin is None:
        return RangeSet()
    own = reading.runs[process.name].delivered.get(life, RangeSet())
    return RangeSet(without(consumed.within(0, session.begin), [own]))


def _farewell(cluster: Cluster) -> Trouble | None:
    source = cluster.source
    if source is None or not source.left:
        return "L1", "the source deregistered and is not rid of its stores"
    # A source with a session id has no RegID to return where it never got one. An earlier life that does not know its
    # end may register again when the store has forgotten it. It has a RegID of its own, and its lifetime ends it.
    for index, reg_id in source.known_at.items():
        clients = list(clients_of(cluster.disks[STORES[index]].states()).values())
        life = source.config.incarnation
        if STORES[index] in cluster.checkers.facts.copied:
            # The copy may know another life, whose state the lifetime ends, with the receivers that it has.
            holders = {one.reg_id: one.incarnation for one in clients if one.role is Role.SOURCE}
            clients = [one for one in clients if life == holders.get(one.source_reg_id, one.incarnation)]
        if cluster.checkers.facts.holders_of.get((STORES[index], reg_id), [life])[-1] != life:
            # A RegID has one holder at a time. Another life got this one when the lease was over, and keeps the state.
            clients = [one for one in clients if reg_id not in (one.reg_id, one.source_reg_id)]
        if any(one.incarnation == life or reg_id in (one.reg_id, one.source_reg_id) for one in clients):
            return "L1", f"the source deregistered, {STORES[index]} has not forgotten it"
    return None


def _receivers(cluster: Cluster) -> Trouble | None:
    reading = cluster.checkers.receivers
    for receiver in RECEIVERS:
        process = cluster.processes[receiver]
        assert isinstance(process, ReceiverProcess)
        if process.leaving:
            if not process.left and not _out_of_reach(cluster, process):
                return "L1", f"{receiver} deregistered and is not rid of its stores"
            continue
        session = reading.ledgers[receiver].last
        if session is None and cluster.deserted and not _proxy_is_due(cluster):
            continue  # The receiver came while the source was away, and no proxy can replace the source.
        if cluster.deserted and not _remembered(cluster):
            continue  # It cannot register with stores that lost the source, or have no vote about it.
        # A range that a session has passed will never arrive: that breaks D1, and not L1.
        for low, high, life in reading.missed(receiver):
            passed = session is not None and session.next >= high and not cluster.setup.arrival
            return "D1" if passed else "L1", f"{receiver} never had {low}..{high - 1} of life {life:#x}"
    return None


def _out_of_reach(cluster: Cluster, process: ReceiverProcess) -> bool:
    """Return whether a leaving receiver lacks only stores whose address it can no longer learn.

    Receivers learn the addresses of stores from SRIs alone, and in turns (P-502) an SRI names only the store whose turn
    it is. A store that moved after its turn is asked at its old address. It forgets the receiver when the state
    lifetime ends.
    """
    if not (cluster.setup.turns and cluster.setup.named):
        return False
    for session in process.recipient.every_session:
        info = session.machine.info
        named = [] if info is None else [entry.index for entry in info.stores]
        for index, held in session.machine.status.registrations.items():
            if not held.left and (index in named or held.address in cluster.network.listeners):
                return False
    return True


def proxied(cluster: Cluster) -> Trouble | None:
    """Return which proxies are missing or too many."""
    wanted = int(_proxy_is_due(cluster))
    if cluster.deserted and not wanted and cluster.setup.proxies and _may_be_stood_in_for(cluster, remembering=False):
        return None  # It depends on stores that lost their memory.
    # Stores never give up (C-40): without a quorum their proxies keep trying, and none may register.
    trying = cluster.deserted and not wanted
    running = [process.name for process in cluster.processes.values() if _runs_proxy(process, trying)]
    strangers = wanted and len(running) > 1 and cluster.checkers.stores.strangers(running)
    stays = trying and len(running) == 1 and _registered_before_a_loss(cluster)
    # One that asks in vain stands in for nobody: it is overtaken soon. Without memory stores may refuse it for good.
    asks = wanted and cluster.checkers.facts.lost_at < 0 and not all(map(_stands_in, cluster.processes.values()))
    if strangers or stays or (len(running) == wanted and not asks):
        return None
    return (
        "E8",
        f"{', '.join(running) or 'nobody'} runs a proxy while {SOURCE} is {'away' if cluster.deserted else 'there'}",
    )


def _registered_before_a_loss(cluster: Cluster) -> bool:
    """Return whether all proxies registered before a disk was lost: they keep the stores that they have."""
    stores = [process for process in cluster.processes.values() if isinstance(process, StoreProcess) and process.alive]
    times = [at for store in stores for at in store.proxies_registered_at]
    return max(times, default=0) < cluster.checkers.facts.lost_at


def _proxy_is_due(cluster: Cluster) -> bool:
    return cluster.deserted and cluster.setup.proxies and _may_be_stood_in_for(cluster)


def _runs_proxy(process: object, trying: bool) -> bool:
    """Return whether a store runs a proxy; while proxies may be `trying`, only registered ones count."""
    if not isinstance(process, StoreProcess) or not process.alive:
        return False
    return (process.registered_proxies if trying else process.proxies) > 0


def _stands_in(process: object) -> bool:
    """Return whether enough stores have registered each proxy that a process runs."""
    return not isinstance(process, StoreProcess) or process.proxies == process.registered_proxies


def _may_be_stood_in_for(cluster: Cluster, *, remembering: bool = True) -> bool:
    """Return whether a proxy can register: some store knows the others, and if need be quorums of them have the state.

    A store that granted late was not named itself, and a proxy does not register with it. A proxy does not know the
    source's rule between the groups, so it needs a quorum of every group. It is certain to register if these stores are
    `remembering`: they have a vote about the source.
    """
    known = [
        [one.stores for one in clients_of(cluster.disks[name].states()).values() if _named(one)] for name in STORES
    ]
    keepers = _keepers(cluster, remembering=remembering)
    groups = cluster.setup.groups
    for stores in (stores for at_one in known for stores in at_one):
        there = [groups[entry.index] for entry in stores if entry.index in keepers]
        sizes = enumerate(cluster.setup.rules.sizes)
        if not cluster.setup.quorate or all(there.count(group) >= quorum_of(size) for group, size in sizes):
            return True
    return False


def _remembered(cluster: Cluster) -> bool:
    """Return whether each group has a quorum of stores with a vote about the source."""
    return cluster.checkers.facts.judge.everywhere(STORES[index] for index in _keepers(cluster, remembering=True))


def _named(client: Client) -> bool:
    return any(entry.index == client.store_index for entry in client.stores)


def _keepers(cluster: Cluster, *, remembering: bool) -> set[int]:
    """Return the stores that have state of the source, and if they are to be `remembering`, a vote."""
    disks = [clients_of(cluster.disks[name].states()).values() for name in STORES]
    sources = [[one for one in clients if one.role is Role.SOURCE] for clients in disks]
    voting = [[one for one in at_one if not remembering or one.memory is StoreMemory.KEPT] for at_one in sources]
    return {index for index, found in enumerate(voting) if found}
