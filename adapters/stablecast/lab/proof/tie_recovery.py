"""Map states and edges of a recorded graph of `tla/ReceiverVotes` to structures and steps of the system Recovery.

Elements are store i - 1, life l with 0 for nobody, and number n. The graph begins after a first life of the source and
a first run of the receiver, so the structure begins with the steps of those. A step of the graph is many of the system:
it syncs disks, reports what is stable, delivers, consumes and acknowledges at once. A number that a session gave up and
has not reached yet is lost for the system already, and stays so if the session dies.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import attrs

from stablecast.lab.model.worlds.receiver_votes import IDS, ReceiverVotesConstants
from stablecast.lab.proof.evaluation import Evaluator, Structure, Value
from stablecast.lab.proof.recovery import recovery
from stablecast.lab.proof.tie_defaults import TieDefaults

Step = tuple[str, dict[str, Value]]
"""The name of a transition, and its parameters."""
State = Mapping[str, Any]

STORES = range(len(IDS))
FIRST, SECOND = 1, 2
"""The lives of the source."""
COUNTING = ("REGISTERED", "RENEWING")
"""States of a registration that counts."""


@attrs.frozen
class Offer:
    """What a store grants to the receiver: the grant of the model, and whether the store knows it."""

    old: bool
    low: int
    lacks: int

    @classmethod
    def of(cls, store: State) -> "Offer":
        """Return the grant of a store that follows the rules of votes."""
        if store["client"] == "old":
            return cls(True, store["ack"] + 1, -1)
        ack = store["ack"] if store["client"] == "new" else -1
        above = ack + 1 < store["first"]
        return cls(False, store["first"] if above else ack + 1, ack + 1 if above else -1)


@attrs.frozen
class RecoveryTie(TieDefaults):
    """Tie the graphs of one configuration, whose stores and receiver follow the rules of votes."""

    evaluator: Evaluator
    constants: ReceiverVotesConstants
    quorums: tuple[frozenset[int], ...]

    @classmethod
    def create(cls, constants: ReceiverVotesConstants) -> "RecoveryTie":
        quorums = tuple(map(frozenset, combinations(STORES, len(IDS) // 2 + 1)))
        in_k = frozenset((store, index) for index, one in enumerate(quorums) for store in one)
        values: dict[str, Value] = {"careful": True, "healing": True, "nobody": 0, "least": 0, "in_k": in_k}
        sizes = {"Store": len(IDS), "Life": SECOND + 1, "Number": constants.Messages + 1, "Quorum": len(quorums)}
        return cls(Evaluator(recovery(), sizes, values), constants, quorums)

    def start(self) -> Structure:
        """Return the structure after the first life of the source, and the first run of the receiver."""
        structure, known = self.evaluator.initial(), self.constants
        away = {store - 1 for store in known.Away}
        here = [store for store in STORES if store not in away]
        knows = [store - 1 for store in sorted(known.Knows)]
        quorum = self._within(set(here))
        steps: list[Step] = [("Start", {"s": store}) for store in STORES]
        steps += [("Begin.all", {"l": FIRST, "n": 0})]
        steps += [("Stop", {"s": store}) for store in sorted(away)]
        for number in range(known.Old):
            steps.append(("Send", {"n": number}))
            steps += [("Sync", {"s": store}) for store in here]
            steps.append(("Report", {"n": number, "k": quorum}))
        steps.append(("Register", {}))
        steps += [("Grant.new", {"s": store, "m": 0, "m2": 0}) for store in here]
        steps += [("Complete.votes", {"k": quorum, "s": here[0]})]
        steps += [step for number in range(known.Acked) for step in self._delivered(number)]
        for store in knows:
            steps += [("Acknowledge", {"s": store, "n": known.Acked - 1})]
            steps += [("Arrive", {"s": store, "l": FIRST, "n": known.Acked - 1})]
        steps += [("Crash", {})]
        for name, parameters in steps:
            if name == "Start" and self.evaluator.value(structure, "up") >= {(parameters["s"],)}:
                continue
            blocked = self.evaluator.enabled(self.evaluator.transitions[name], structure, parameters)
            assert blocked is None, (name, parameters, blocked)
            structure = self.evaluator.perform(self.evaluator.transitions[name], structure, parameters)
        return structure

    def covers(self, action: str, state: State) -> bool:
        """Return whether a life begins with a quorum of stores that remember, as Stability proves of a source."""
        remember = {at for at, one in enumerate(state["store"]) if one["up"] and not one["forgot"]}
        return action != "Begin" or self._within(remember, none=-1) >= 0

    # Comparison of a state with a structure.

    def differences(self, state: State, structure: Structure) -> Iterator[str]:
        get, source, receiver, stores = self.evaluator.value, state["source"], state["rcv"], state["store"]
        running, active = receiver["state"] != "DOWN", receiver["state"] == "ACTIVE"
        given_up = {number for number, _ in get(structure, "lost")}
        wanted: dict[str, Any] = {
            "now": source["life"],
            "passed": {(number,) for number in range(source["next"])},
            "up": {(at,) for at, one in enumerate(stores) if one["up"]},
            "holds": {(at, *pair) for at, one in enumerate(stores) if one["up"] for pair in self._messages(one)},
            "disk_holds": {(at, *pair) for at, one in enumerate(stores) for pair in self._messages(one)},
            "knows": {(at,) for at, one in enumerate(stores) if one["client"] == "old"},
            "acked": {(at, *pair) for at, one in enumerate(stores) for pair in self._pairs(range(one["ack"] + 1))},
            "consumed": set(self._pairs(state["read"])),
            "of": source["life"] if running else 0,
            "begun": active,
        }
        if active:
            wanted["certain"] = receiver["certain"]
        elif running:
            grants = [(at, receiver["grants"][at]) for at in _counting(receiver)]
            below = {(at, number) for at, one in grants for number in range(one["low"])}
            wanted["granted"] = {(at,) for at, _ in grants}
            old = {(at,) for at, one in grants if one["old"]}
            if get(structure, "old") & get(structure, "granted") != old:
                yield "old"
            if {pair for pair in get(structure, "below") if (pair[0],) in wanted["granted"]} != below:
                yield "below"
            votes = {(at,) for at, one in grants if one["vote"]} - old
            if get(structure, "votes") & wanted["granted"] - old != votes:
                yield "votes"
        yield from (name for name, value in wanted.items() if value != get(structure, name))
        met = {(at,) for at, one in enumerate(stores) if one["met"]}
        if met != {(at,) for at, life in get(structure, "disk_life") if life == SECOND}:
            yield "disk_life"
        if active and {number for (number,) in get(structure, "over")} != set(range(receiver["start"])):
            yield "over"
        if not state["lost"] | (receiver["gone"] if running else frozenset()) <= given_up:
            yield "lost"

    # The steps of an edge.

    def steps(self, action: str, store: int, before: State, after: State) -> Iterator[Step]:
        yield from self._first(action, store, before, after)
        for at, (old, new) in enumerate(zip(before["store"], after["store"], strict=True)):
            if new["up"] and new["holds"] != old["holds"]:
                yield ("Sync", {"s": at})
        yield from self._reported(before, after)
        if action != "Die" and after["rcv"]["state"] != "DOWN":
            yield from self._session(before, store if action == "Register" else -1, after)

    def _first(self, action: str, s: int, before: State, after: State) -> Iterator[Step]:
        """Yield what happens before disks are synced."""
        match action:
            case "Begin":
                up = {at for at in STORES if before["store"][at]["up"]}
                remember = {at for at in up if not before["store"][at]["forgot"]}
                parameters: dict[str, Value] = {"l": SECOND, "n": before["source"]["next"]}
                yield ("Begin", {**parameters, "k": self._within(remember)})
            case "Send":
                yield ("Send", {"n": before["source"]["next"]})
            case "Refill":
                news = set(self._messages(after["store"][s])) - set(self._messages(before["store"][s]))
                yield ("Refill", {"s": s, "l": SECOND, "found": frozenset(news)})
            case "Stop":
                yield ("Stop", {"s": s})
            case "Replace":
                yield ("Replace", {"s": s, "mended": self._whole(before, s)})
            case "Restart":
                yield ("Start", {"s": s})
                if before["source"]["life"] == SECOND:
                    yield ("Join.again" if before["store"][s]["met"] else "Join", {"s": s})
            case "Return":
                yield ("Register", {})
            case "Register":
                yield self.registering(before, s)
                if before["rcv"]["state"] == "ACTIVE":
                    yield self._late(before, after, s)
            case "Die":
                yield ("Crash", {})
            case "Tick":
                silent = [at for at in STORES if before["rcv"]["reg"][at] == "RENEWING" and not _counts(after, at)]
                for at in silent:
                    yield ("Leave", {"s": at})

    def registering(self, state: State, s: int) -> Step:
        """Return the first step of a registration."""
        if state["rcv"]["state"] == "ACTIVE":
            return ("Leave", {"s": s})  # If it counted, it was lost. Its grant is judged like that of any other.
        offer = Offer.of(state["store"][s])
        if offer.old:
            return ("Grant.old", {"s": s})
        return ("Grant.new", {"s": s, "m": offer.low, "m2": offer.lacks if offer.lacks >= 0 else offer.low})

    def _late(self, before: State, after: State, s: int) -> Step:
        """Return the step of a grant that comes after the session began."""
        offer, session = Offer.of(before["store"][s]), before["rcv"]
        if not offer.old:
            return ("Late.new", {"s": s})
        if session["certain"]:
            return ("Late.certain", {"s": s})
        if offer.low >= session["start"]:
            return ("Late.higher" if after["rcv"]["certain"] else "Late.above", {"s": s})
        fresh = session["next"] == session["start"] > session["acked"]
        return ("Late.back" if fresh else "Late.lost", {"s": s})

    def _session(self, before: State, registering: int, after: State) -> Iterator[Step]:
        """Yield how a session begins, gives up, delivers and acknowledges."""
        old, new = before["rcv"], after["rcv"]
        if new["state"] != "ACTIVE":
            return
        begins = old["state"] != "ACTIVE"
        if begins:
            yield self._complete(self._grants(before, registering, after), new["start"])
            old = {**new, "next": new["start"], "gone": frozenset(), "acked": new["start"] - 1}
        told = (after["lost"] - before["lost"] | new["gone"]) - old["gone"]
        begin = new["start"] if new["start"] < old["start"] else old["next"]
        registered = {at for at in STORES if new["reg"][at] == "REGISTERED"}
        for number in sorted(one for one in told if one >= new["start"] and not begins):
            yield ("GiveUp", {"n": number, "l": self._owner(number), "k": self._within(registered)})
        for number in range(begin, new["next"]):
            if number in after["read"] and number not in old["gone"] | told:
                yield from self._delivered(number)
        if new["acked"] >= new["start"]:
            for at, (was, one) in enumerate(zip(before["store"], after["store"], strict=True)):
                if one["up"] and one["client"] == "old" and (was["client"], was["ack"]) != ("old", one["ack"]):
                    yield ("Acknowledge", {"s": at, "n": new["acked"]})
                    yield ("Arrive", {"s": at, "l": SECOND, "n": new["acked"]})

    def _complete(self, grants: Mapping[int, State], start: int) -> Step:
        """Return the rule by which a session begins: a store that knows, a quorum of votes, or all grants."""
        knowing = [at for at, one in grants.items() if one["old"]]
        if knowing:
            return ("Complete.old", {"s": max(knowing, key=lambda at: grants[at]["low"])})
        voters = {at for at, one in grants.items() if one["vote"]}
        lowest = min(voters or grants, key=lambda at: grants[at]["low"])
        if self._within(voters, none=-1) >= 0 and grants[lowest]["low"] == start:
            return ("Complete.votes", {"k": self._within(voters), "s": lowest})
        parameters: dict[str, Value] = {
            "k": self._within(set(grants)),
            "s": min(grants, key=lambda at: grants[at]["low"]),
        }
        whole = [at for at, one in grants.items() if one["lacks"] < 0]
        return ("Complete.all", {**parameters, "s2": whole[0]}) if whole else ("Complete.lost", parameters)

    def _grants(self, before: State, registering: int, after: State) -> dict[int, State]:
        """Return the grants by which a session begins: what counting stores offered, and the grant of this step."""
        grants = {at: before["rcv"]["grants"][at] for at in _counting(after["rcv"])}
        if registering >= 0:
            store = before["store"][registering]
            offer = Offer.of(store)
            vote = offer.old or (offer.lacks < 0 and not store["forgot"])
            grants[registering] = {**attrs.asdict(offer), "vote": vote}
        return grants

    # Parts of states.

    def _delivered(self, number: int) -> Iterator[Step]:
        parameters: dict[str, Value] = {"n": number, "l": self._owner(number)}
        yield ("Deliver", parameters)
        yield ("Consume", parameters)

    def _reported(self, before: State, after: State) -> Iterator[Step]:
        """Yield reports of what the disks of a quorum hold of the second life."""
        for number in range(self.constants.Old, after["source"]["next"]):
            there = self._disks(after, number)
            if self._within(there, none=-1) >= 0 and self._within(self._disks(before, number), none=-1) < 0:
                yield ("Report", {"n": number, "k": self._within(there)})

    def _disks(self, state: State, number: int) -> set[int]:
        return {at for at, one in enumerate(state["store"]) if one["met"] and number in one["holds"]}

    def _whole(self, state: State, s: int) -> frozenset[tuple[int, ...]]:
        """Return the other stores that lack nothing of what the second life knows."""
        needed = set(range(state["source"]["next"]))
        return frozenset(
            (at,)
            for at, one in enumerate(state["store"])
            if at != s and one["up"] and one["met"] and needed <= one["holds"]
        )

    def _owner(self, number: int) -> int:
        return FIRST if number < self.constants.Old else SECOND

    def _pairs(self, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        return ((number, self._owner(number)) for number in numbers)

    def _messages(self, store: State) -> Iterator[tuple[int, int]]:
        return self._pairs(store["holds"])

    def _within(self, stores: set[int], none: int = 0) -> int:
        """Return a quorum within stores; `none` if there is none."""
        return next((index for index, one in enumerate(self.quorums) if one <= stores), none)


@attrs.frozen
class RecoveryBounds:
    """List the steps of `tla/ReceiverVotes` that the bounds of a configuration leave open in a state.

    A registration may take time and so may delivery, so the steps of the receiver are judged forward only. Stores and
    source do what they can, one step at a time.
    """

    constants: ReceiverVotesConstants
    tie: RecoveryTie

    def candidates(self, state: State) -> Iterator[tuple[str, Step]]:
        """Yield actions of the graph within the bounds, each with the first step that the system may allow for it."""
        running, life, left = state["rcv"]["state"] != "DOWN", state["source"]["life"], state["left"]
        if life == SECOND and not running and left["returns"]:
            yield "Return", ("Register", {})
        if life == SECOND and not running and state["source"]["next"] < self.constants.Messages:
            yield "Send", ("Send", {"n": state["source"]["next"]})
        if running:
            yield "Die", ("Crash", {})
        for s, store in enumerate(state["store"]):
            if store["up"]:
                if left["stops"]:
                    yield f"Stop({s + 1})", ("Stop", {"s": s})
                if running and state["rcv"]["reg"][s] != "REGISTERED":
                    yield f"Register({s + 1})", self.tie.registering(state, s)
            else:
                yield f"Restart({s + 1})", ("Start", {"s": s})


def _counts(state: State, at: int) -> bool:
    return state["rcv"]["reg"][at] in COUNTING


def _counting(receiver: State) -> Sequence[int]:
    return [at for at in STORES if receiver["reg"][at] in COUNTING]
