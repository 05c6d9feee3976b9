"""Map states and edges of a recorded graph of `tla/Refill` to structures and steps of its first-order system.

Elements are store i - 1, life l with 0 for nobody, and number n. Numbers of a state begin at 0, too.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import attrs

from stablecast.lab.model.worlds.refill import RefillConstants
from stablecast.lab.proof.evaluation import Evaluator, Structure, Value
from stablecast.lab.proof.refill import refill
from stablecast.lab.proof.tie_defaults import TieDefaults

Step = tuple[str, dict[str, Value]]
"""The name of a transition, and its parameters."""
State = Mapping[str, Any]


@attrs.frozen
class RefillTie(TieDefaults):
    evaluator: Evaluator
    constants: RefillConstants
    quorums: tuple[frozenset[int], ...]

    @classmethod
    def create(cls, constants: RefillConstants) -> "RefillTie":
        stores = range(constants.Stores)
        quorums = tuple(map(frozenset, combinations(stores, constants.Stores // 2 + 1)))
        values: dict[str, Value] = {
            "careful": constants.Careful,
            "healing": constants.Healing,
            "nobody": 0,
            "least": 0,
            "in_k": frozenset((store, index) for index, one in enumerate(quorums) for store in one),
        }
        sizes = {
            "Store": constants.Stores,
            "Life": constants.Lives + 1,
            "Number": constants.Messages + 1,
            "Quorum": len(quorums),
        }
        return cls(Evaluator(refill(), sizes, values), constants, quorums)

    # Comparison of a state with a structure.

    def differences(self, state: State, structure: Structure) -> Iterator[str]:
        get, source = self.evaluator.value, state["source"]
        life = source["life"]
        wanted: dict[str, Any] = {
            "now": life,
            "passed": {(number,) for number in range(source["next"])},
            "stable": set(state["stable"]),
            "up": {(at,) for at, one in enumerate(state["store"]) if one["up"]},
            "joined": {(at,) for at, one in enumerate(state["store"]) if one["joined"]},
            "holds": {(at, *pair) for at, one in enumerate(state["store"]) for pair in _held(one)},
            "disk_holds": {(at, *pair) for at, one in enumerate(state["disk"]) for pair in _held(one)},
            "disk_life": {(at, one["life"]) for at, one in enumerate(state["disk"]) if one["life"]},
            "kept": {(at,) for at, one in enumerate(state["disk"]) if one["kept"]},
            "used": {(at, number) for at, one in enumerate(state["disk"]) for number in range(one["known"] + 1)},
        }
        yield from (name for name, value in wanted.items() if value != get(structure, name))
        own = get(structure, "own")
        for record in (source, *state["disk"]):
            numbers = range(self.constants.Messages + 1)
            owners = {(record["life"], n, _owner(record["history"], n)) for n in numbers if record["life"]}
            if owners != {one for one in own if one[0] == record["life"]}:
                yield f"the history of life {record['life']}"

    # The steps of an edge.

    def steps(self, action: str, store: int, before: State, after: State) -> Iterator[Step]:
        news = frozenset(
            pair for old, new in zip(before["store"], after["store"], strict=True) for pair in _held(new) - _held(old)
        )
        yield self.step(action, store, before, news)
        life = after["source"]["life"]
        for number, _ in sorted(after["stable"] - before["stable"]):
            disks = {at for at, one in enumerate(after["disk"]) if one["life"] == life == one["holds"][number]}
            yield ("Report", {"n": number, "k": self._within(disks)})

    def step(self, action: str, s: int, state: State, found: frozenset[tuple[int, ...]]) -> Step:
        """Return the first transition of an action; `found` is what a refill brings back, as numbers and lives."""
        match action:
            case "Begin":
                return self._beginning(state)
            case "Send":
                return ("Send", {"n": state["source"]["next"]})
            case "Join":
                again = state["disk"][s]["life"] == state["source"]["life"]
                return ("Join.again" if again else "Join", {"s": s})
            case "Refill":
                return ("Refill", {"s": s, "l": state["disk"][s]["life"], "found": found})
            case "Replace":
                mended = frozenset((at,) for at in range(self.constants.Stores) if at != s)
                return (
                    ("Replace", {"s": s, "mended": mended}) if self.constants.Careful else ("Replace.early", {"s": s})
                )
            case _:
                return (action, {"s": s})

    def _beginning(self, state: State) -> Step:
        up = [at for at, one in enumerate(state["store"]) if one["up"]]
        held = [number for at in up for number, _ in _held(state["store"][at])]
        known = [state["disk"][at]["known"] for at in up]
        parameters: dict[str, Value] = {"l": state["source"]["life"] + 1, "n": 1 + max([-1, *held, *known])}
        voters = {at for at in up if state["disk"][at]["kept"]}
        if len(up) == self.constants.Stores and 2 * len(voters) <= len(up):
            return ("Begin.all", parameters)
        return ("Begin", {**parameters, "k": self._within(voters)})

    def _within(self, stores: set[int]) -> int:
        """Return a quorum within stores; 0 if there is none."""
        return next((index for index, one in enumerate(self.quorums) if one <= stores), 0)


@attrs.frozen
class RefillBounds:
    """List the steps of `tla/Refill` that the bounds of a configuration leave open in a state."""

    constants: RefillConstants
    tie: RefillTie

    def candidates(self, state: State) -> Iterator[tuple[str, Step]]:
        """Yield actions of the graph within the bounds, each with the first step that the system may allow for it."""
        source, limits = state["source"], self.constants
        if source["life"] < limits.Lives:
            yield "Begin", self.tie.step("Begin", -1, state, frozenset())
        if source["next"] < limits.Messages:
            yield "Send", self.tie.step("Send", -1, state, frozenset())
        for s in range(limits.Stores):
            for action, found in self._of_store(state, s):
                yield f"{action}({s + 1})", self.tie.step(action, s, state, found)

    def _of_store(self, state: State, s: int) -> Iterator[tuple[str, frozenset[tuple[int, ...]]]]:
        store, disk, left = state["store"][s], state["disk"][s], state["left"]
        nothing: frozenset[tuple[int, ...]] = frozenset()
        yield "Join", nothing
        yield "Start", nothing
        if store["holds"] != disk["holds"]:
            yield "Sync", nothing
        if left["stops"]:
            yield "Stop", nothing
        if left["wipes"] and (disk["life"] or disk["kept"]):
            yield "Replace", nothing
        found = self._offered(state, s)
        if found:
            yield "Refill", found

    def _offered(self, state: State, s: int) -> frozenset[tuple[int, ...]]:
        """Return what a store knows that it lacks, and any other store holds."""
        store, disk = state["store"][s], state["disk"][s]
        if not disk["life"]:
            return frozenset()
        held = {number for number, _ in _held(store)}
        shown = max([-1, *held, disk["history"][-1] - 1])
        lacking = set(range(state["source"]["next"] if store["joined"] else shown + 1)) - held
        others = [_held(one) for at, one in enumerate(state["store"]) if at != s]
        return frozenset(pair for held in others for pair in held if pair[0] in lacking)


def _held(record: Mapping[str, Any]) -> set[tuple[int, int]]:
    return {(number, life) for number, life in record["holds"].items() if life}


def _owner(history: tuple[int, ...], number: int) -> int:
    """Return the newest life that began at or below a number."""
    return max((life for life, first in enumerate(history, 1) if first <= number), default=0)
