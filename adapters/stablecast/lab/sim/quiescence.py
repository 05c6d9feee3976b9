"""When faults are over: whether all is settled, and if not, which rule speaks of it and who does not get on."""

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.quorum import quorum_of
from stablecast.lab.sim.cluster import Cluster
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.setup import RECEIVERS, SOURCE, STORES
from stablecast.lab.sim.store import StoreProcess
from stablecast.store.client_records import clients_of

Trouble = tuple[str, str]
"""Rule and text."""


def trouble(cluster: Cluster) -> Trouble | None:
    """What is not settled yet, None: everything sent is stable, everybody has it, and who leaves has left."""
    if cluster.checkers.facts.farewell:
        return _farewell(cluster)
    return (None if cluster.deserted else _source(cluster)) or _receivers(cluster) or _proxies(cluster)


def _source(cluster: Cluster) -> Trouble | None:
    source = cluster.source
    if source is not None and source.idle:
        return None
    state = "nobody" if source is None else f"{source.machine.abstract()}, {source.wanted} unsent"
    return "L1", f"not everything sent is stable long after the last fault: {state}"


def _farewell(cluster: Cluster) -> Trouble | None:
    source = cluster.source
    if source is None or not source.left:
        return "L1", "the source deregistered and is not rid of its stores"
    # With a session id it has no RegID to return where it never got one. An earlier life that does not know that it is
    # over may register once more when the store has forgotten: it has a RegID of its own, and its lifetime ends it.
    for index, reg_id in source.known_at.items():
        clients = clients_of(cluster.disks[STORES[index]].states()).values()
        life = source.config.incarnation
        if any(one.incarnation == life or reg_id in (one.reg_id, one.source_reg_id) for one in clients):
            return "L1", f"the source deregistered, {STORES[index]} has not forgotten it"
    return None


def _receivers(cluster: Cluster) -> Trouble | None:
    """What a session has passed by will never come."""
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
            continue  # It came when the source was away, and nobody can stand in: there is nobody to meet.
        for low, high, life in reading.missed(receiver):
            passed = session is not None and session.next >= high and not cluster.setup.arrival
            return "D1" if passed else "L1", f"{receiver} never had {low}..{high - 1} of life {life:#x}"
    return None


def _out_of_reach(cluster: Cluster, process: ReceiverProcess) -> bool:
    """Return whether a receiver that deregistered lacks only stores that nobody can tell it about any more.

    Receivers are told by SRIs alone where stores are, and in turns (P-502) an SRI names the one store whose turn it is.
    A store that moved after its turn is asked where it was. It forgets the receiver when the state lifetime ends.
    """
    if not (cluster.setup.turns and cluster.setup.named):
        return False
    for session in process.every_session():
        info = session.machine.info
        named = [] if info is None else [entry.index for entry in info.stores]
        for index, held in session.machine.status.registrations.items():
            if not held.left and (index in named or held.address in cluster.network.listeners):
                return False
    return True


def _proxies(cluster: Cluster) -> Trouble | None:
    running = [process.name for process in cluster.processes.values() if _runs_proxy(process)]
    wanted = int(_proxy_is_due(cluster))
    strangers = wanted and len(running) > 1 and cluster.checkers.stores.strangers(running)
    if len(running) == wanted or strangers:
        return None
    return "E8", f"{', '.join(running) or 'nobody'} runs a proxy while {SOURCE} is {'away' if wanted else 'there'}"


def _proxy_is_due(cluster: Cluster) -> bool:
    return cluster.deserted and cluster.setup.proxies and _may_be_stood_in_for(cluster)


def _runs_proxy(process: object) -> bool:
    return isinstance(process, StoreProcess) and process.alive and process.proxies > 0


def _may_be_stood_in_for(cluster: Cluster) -> bool:
    """Whether some store knows where a proxy would have to register, and if need be a quorum of them has its state.

    One that was not named itself, for it granted late, is none of those that a proxy would register with.
    """
    known = [
        [one.stores for one in clients_of(cluster.disks[name].states()).values() if _named(one)] for name in STORES
    ]
    keepers = _keepers(cluster)
    groups = cluster.setup.groups
    for stores in (stores for at_one in known for stores in at_one):
        there = [groups[entry.index] for entry in stores if entry.index in keepers]
        sizes = enumerate(cluster.setup.rules.sizes)
        if not cluster.setup.quorate or any(there.count(group) >= quorum_of(size) for group, size in sizes):
            return True
    return False


def _named(client: Client) -> bool:
    return any(entry.index == client.store_index for entry in client.stores)


def _keepers(cluster: Cluster) -> set[int]:
    """The stores that have state of the source."""
    disks = [clients_of(cluster.disks[name].states()).values() for name in STORES]
    return {index for index, clients in enumerate(disks) if any(one.role is Role.SOURCE for one in clients)}
