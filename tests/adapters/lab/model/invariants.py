"""Invariants of the models, for states of the core's worlds under constants that no recorded graph has.

A recorded graph needs none of them: TLC has checked the invariants of the model, and the core has the same states.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from stablecast.core.protocol.quorum import quorum_of
from stablecast.lab.model.canonical import plain, record
from stablecast.lab.model.graph import Graph

Invariants = Mapping[str, Callable[[Mapping[str, Any]], bool]]


def broken(state: Mapping[str, Any], invariants: Invariants) -> list[str]:
    return [name for name, holds in invariants.items() if not holds(state)]


def violations(graph: Graph, invariants: Invariants) -> set[str]:
    """Return the names of the invariants that do not hold in some state."""
    return {name for state in graph.states for name in broken(plain(state), invariants)}


_NO_TOKEN = record(value=0, of=0, life=0)


def _own_proxy(state: Mapping[str, Any]) -> bool:
    """Check E2: a store runs a proxy exactly while it stands or serves, and it is that one."""
    standing = (store["holder"] if store["state"] in ("STANDING", "SERVING") else _NO_TOKEN for store in state["store"])
    return bool(tuple(standing) == state["proxy"])


def _agreed(state: Mapping[str, Any]) -> bool:
    """Check E3: the token that a store holds is that of its registration."""
    return all(store["by"] == store["holder"] for store in state["store"] if store["state"] in ("SERVING", "FOLLOWING"))


PROXY_ELECTION: Invariants = {"OwnProxy": _own_proxy, "Agreed": _agreed}


def _in_order(state: Mapping[str, Any]) -> bool:
    """Check D1: every number is delivered once."""
    told = [abs(number) for number in state["rcv"]["told"]]
    return len(told) == len(set(told))


def _no_gap(state: Mapping[str, Any]) -> bool:
    """Check D1: every number below the session's begin was consumed before, or reported lost."""
    return _settled(state, state["rcv"]["low"])


def _nothing_unread(state: Mapping[str, Any]) -> bool:
    """Check A1: every number that a store counts as acknowledged was consumed or reported lost."""
    return all(_settled(state, store["ack"] + 1) for store in state["store"])


def _no_repeat(state: Mapping[str, Any]) -> bool:
    """Check A2: no number is delivered again that a store which answered knows to be acknowledged."""
    receiver = state["rcv"]
    return bool(receiver["state"] != "ACTIVE" or receiver["low"] > receiver["best"])


def _settled(state: Mapping[str, Any], stop: int) -> bool:
    return all(number in state["read"] or number in state["lost"] for number in range(1, stop))


RECOVERY: Invariants = {
    "InOrder": _in_order,
    "NoGap": _no_gap,
    "NothingUnread": _nothing_unread,
    "NoRepeat": _no_repeat,
}
"""All but the first hold only under the repaired rules and the consensus `highest`, without a request maximum."""


def _one_holder(shared: frozenset[int], state: Mapping[str, Any]) -> bool:
    """Check R1: no two contexts rely on one registration ID."""
    believers = {number for number, client in enumerate(state["client"], 1) if _believes(client)}
    return len(believers) <= 1 or believers <= shared


def _holder_kept(shared: frozenset[int], state: Mapping[str, Any]) -> bool:
    """Check R2: a client that relies on the ID is the holder on the store's disk, or a later life of its context is."""
    holder = state["disk"]
    holders = [number for number, client in enumerate(state["client"], 1) if _believes(client)]
    return all(holder == number or ({number, holder} <= shared and holder > number) for number in holders)


def _believes(client: Any) -> bool:
    return client["state"] in ("REGISTERED", "RENEWING")


def registration(shared: frozenset[int] = frozenset()) -> Invariants:
    """Return the invariants if these clients are lives of one context."""
    return {"OneHolder": partial(_one_holder, shared), "Kept": partial(_holder_kept, shared)}


def _silent(state: Mapping[str, Any]) -> bool:
    """Check Q1: a quiet side plans no turn, and any other side plans one."""
    sides = (state["source"], state["receiver"])
    return all((side["phase"] in ("AWAY", "QUIESCENT")) is (side["due"] == -1) for side in sides)


RESOLUTION_PHASES: Invariants = {"Silent": _silent}


def _owed(state: Mapping[str, Any]) -> Iterator[int]:
    """Yield the stable numbers that blocking receivers still need.

    After a crash these are numbers that were sent since the receiver registered.
    """
    for receiver in state["receiver"]:
        if receiver["blocks"] and receiver["state"] == "IN":
            first = max(receiver["since"] if state["crashed"] else 0, receiver["consumed"] + 1)
            yield from (number for number in state["stable"] if number >= first)


def _paced_kept(state: Mapping[str, Any]) -> bool:
    """Check P2: a stable message stays at the store until every registered blocking receiver has consumed it."""
    store = state["store"]
    return not store["up"] or all(number in store["held"] for number in _owed(state))


def _paced_synced(state: Mapping[str, Any]) -> bool:
    """Check P1: such a message is on disk."""
    return all(number in state["disk"]["messages"] for number in _owed(state))


RPP: Invariants = {"PacedRetention": _paced_kept, "SyncedFirst": _paced_synced}


def _one_connection(state: Mapping[str, Any]) -> bool:
    """Check N2: a context is registered on one connection."""
    return all("none" in (part["now"]["state"], part["old"]["state"]) for part in state["session"])


def _records_kept(state: Mapping[str, Any]) -> bool:
    """Check N1: a service that has received everything holds exactly what the context holds."""
    rows = zip(*(state[name] for name in ("context", "client", "wire", "session")), strict=True)
    return all(
        (client["state"], client["source"], client["want"]) == ("CURRENT", context["has"], context["wants"])
        for context, client, wire, session in rows
        if session["now"]["state"] == "told" and not wire["hung"] and wire["there"] == ()
    )


SRS_LIFETIME: Invariants = {"Kept": _records_kept, "OneConnection": _one_connection}


def _stable_by_quorum(state: Mapping[str, Any]) -> bool:
    """Check S1: what this life reported stable is on the disks of a quorum."""
    return all(_kept(state, life, number) for life, number in state["safe"] if life == state["source"]["life"])


def _no_reuse(state: Mapping[str, Any]) -> bool:
    """Check S2: no life reuses a stable number."""
    life, resume = state["source"]["life"], state["source"]["resume"]
    return not resume or all(number < resume for older, number in state["safe"] if older < life)


def _no_stable_lost(state: Mapping[str, Any]) -> bool:
    """Check S3: what was ever stable is on the disks of a quorum."""
    return all(_kept(state, life, number) for life, number in state["safe"])


def _numbers_unique(state: Mapping[str, Any]) -> bool:
    """Check S2 where an older life may return: no number was stable for two lives."""
    return len({number for _, number in state["safe"]}) == len(state["safe"])


def _followed(disk: Any, life: int) -> bool:
    """Return whether the store knows a later life, so that this life's view of it no longer counts."""
    lives = disk["lives"]
    return bool(lives) and lives[-1]["life"] != life


def _synced_first(state: Mapping[str, Any]) -> bool:
    """Check P1: what a store acknowledged is on its disk, of this life."""
    life = state["source"]["life"]
    return all(
        disk["content"][number - 1] == life
        for disk, numbers in zip(state["disk"], state["window"]["acked"], strict=True)
        if not _followed(disk, life)
        for number in numbers
    )


def _no_dead_served(state: Mapping[str, Any]) -> bool:
    """Check S3: a store that knows where this life begins serves no dead message in place of a stable one."""
    told = [store for store in state["store"] if store["life"] == state["source"]["life"]]
    return all(
        store["content"][number - 1] in (0, stable)
        for store in told
        for stable, number in state["safe"]
        if number < store["resume"]
    )


def _retained_until_settled(state: Mapping[str, Any]) -> bool:
    """Check C1: the source retains every message that is not stable."""
    source = state["source"]
    gone = range(source["resume"], state["window"]["trail"]) if source["resume"] else ()
    return all((source["life"], number) in state["safe"] for number in gone)


def _kept(state: Mapping[str, Any], life: int, number: int) -> bool:
    """Return whether more than half of a group holds the message on disk."""
    has: dict[int, list[bool]] = {}
    for disk in state["disk"]:
        has.setdefault(disk["group"], []).append(disk["content"][number - 1] == life)
    return any(sum(held) >= quorum_of(len(held)) for held in has.values())


STABILITY: Invariants = {
    "StableByQuorum": _stable_by_quorum,
    "NoReuse": _no_reuse,
    "NumbersUnique": _numbers_unique,
    "NoStableLost": _no_stable_lost,
    "NoDeadServed": _no_dead_served,
    "SyncedFirst": _synced_first,
    "RetainedUntilSettled": _retained_until_settled,
}
"""The model states them more strictly, because it knows the rules between the groups."""


def _no_circle(state: Mapping[str, Any]) -> bool:
    """Check B1: no message is under way to a router that it has passed."""
    return all(
        to not in one["by"]
        for wires in state["wire"]
        for to, wire in enumerate(wires, 1)
        for batch in wire
        for one in batch
        if one["kind"] == "data"
    )


def _once(state: Mapping[str, Any]) -> bool:
    """Check B3: a receiver gets the messages of a life once, and in order."""
    lives = ([number for life, number in got if life == wanted] for got in state["got"] for wanted in (1, 2))
    return all(numbers == sorted(set(numbers)) for numbers in lives)


ROUTER: Invariants = {"NoCircle": _no_circle, "Once": _once}
