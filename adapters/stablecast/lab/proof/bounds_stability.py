"""List the steps of `tla/Stability` that the bounds of a configuration leave open in a state.

The first-order system knows neither queues nor an order of disks and messages, nor limits of numbers and faults. Those
are the bounds of a graph (`Calm`, `Prompt`, `Connected` and so on in the model). Each candidate is a step within them.
If the system enables it in the structure, the graph must have it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from stablecast.lab.model.worlds.stability_stores import LAYOUTS, StabilityConstants
from stablecast.lab.proof.tie_stability import COUNTING, RUNNING, StabilityTie, Step

ASKING = frozenset({"asked", "renewing", "away"})


@attrs.frozen
class StabilityBounds:
    """Hold the bounds of a configuration. Stores are counted from 0 here."""

    constants: StabilityConstants
    tie: StabilityTie

    def candidates(self, state: Mapping[str, Any]) -> Iterator[tuple[str, Step]]:
        """Yield actions of the graph within the bounds, each with the first step that the system may allow for it."""
        calm = self._calm(state, None)
        if calm or self._quiet(state):
            yield from (one for one in self._of_source(state, calm) if self._chosen(state, one[0], -1))
        for store in range(self.tie.stores):
            for action, step in self._of_store(state, store):
                if self._chosen(state, action, store):
                    yield f"{action}({store + 1})", step

    def _chosen(self, state: Mapping[str, Any], action: str, store: int) -> bool:
        """Return whether an action is part of the one failure that the paths "groups" are about."""
        if self.constants.Paths != "groups":
            return True
        source, window, other = state["source"], state["window"], state["aside"]["source"]
        later = source["life"] == 2
        match action:
            case "Stop":
                return bool(later and window["trail"] > source["resume"])
            case "Turn":
                return not other["life"] or (later and source["state"] not in RUNNING)
            case "Send":
                return bool(later or other["life"] == 2)
            case "Crash":
                unsent = source["state"] == "ACTIVE" and window["next"] == source["resume"]
                return bool(store == 2 and later and unsent)
            case "Restart":
                return not later
            case _:
                return True

    def _of_source(self, state: Mapping[str, Any], calm: bool) -> Iterator[tuple[str, Step]]:
        source, window, limits = state["source"], state["window"], self.constants
        life, running = source["life"], source["state"] in RUNNING
        newest = max(life, state["aside"]["source"]["life"])
        if calm and not running and newest < limits.Lives:
            yield "Begin", ("Begin", {"l": newest + 1})
        if running:
            yield "Stop", ("Stop", {"l": life})
        if calm and running and source["state"] != "REGISTERING":
            yield "Turn", ("Turn", {"l": life})
        if not (calm and running and self._prompt(state, range(self.tie.stores))):
            return
        renewing = {index for index, one in enumerate(state["reg"]) if one["state"] == "renewing"}
        if renewing or (source["state"] == "REGISTERING" and not source["waited"]):
            yield "Wait", self._waited(state, renewing)
        flight = set(range(window["trail"], window["next"])) - set(window["stable"])
        if window["next"] <= limits.Numbers and len(flight) < limits.Flight:
            yield "Send", ("Send", {"l": life, "n": window["next"] - 1})

    def _waited(self, state: Mapping[str, Any], renewing: set[int]) -> Step:
        source = state["source"]
        rest = {index for index, one in enumerate(state["reg"]) if one["state"] in COUNTING} - renewing
        dropped = frozenset((one,) for one in renewing)
        enough = any(one <= rest for one in self.tie.quorums["c"])
        if source["state"] == "ACTIVE" and not enough:
            return ("Wait.suspended", {"l": source["life"], "dropped": dropped})
        return ("Wait", {"l": source["life"], "dropped": dropped, "c": self.tie.within("c", rest)})

    def _of_store(self, state: Mapping[str, Any], s: int) -> Iterator[tuple[str, Step]]:
        source, store = state["source"], state["store"][s]
        if state["back"][s]:
            yield from (("ToSource", step) for step in self.tie.first_heard(s, state))
        if self._quiet(state):
            if store["dirty"]:
                yield "Sync", self._synced(state, s)
            if state["crashes"] < self.constants.Crashes:
                yield "Crash", ("Crash", {"s": s})
        if not self._calm(state, s):
            return
        yield "Restart", self._restarted(state, s)
        if self._replaceable(state, s):
            yield "Wipe", ("Wipe", {"s": s})
        if source["state"] in RUNNING and self._connected(state, s) and self._prompt(state, range(s)):
            if state["reg"][s]["state"] in ASKING and store["up"]:
                yield "Ask", self.tie.asked(s, state)
            if store["life"] == source["life"] and store["up"]:
                yield from (("Inform", step) for step in self.tie.first_informed(s, state))
        if self._prompt(state, range(self.tie.stores)) and store["up"]:
            yield from self._data(state, s)

    def _synced(self, state: Mapping[str, Any], s: int) -> Step:
        store = state["store"][s]
        return ("Sync.granted", {"s": s, "l": store["life"]}) if store["grant"] else ("Sync", {"s": s})

    def _restarted(self, state: Mapping[str, Any], s: int) -> Step:
        disk = state["disk"][s]
        told = self.tie.told(disk)
        if told is not None and told // self.tie.terms == disk["life"]:
            return ("Restart.begun", {"s": s, "e": told, "l": disk["life"]})
        return ("Restart", {"s": s})

    def _replaceable(self, state: Mapping[str, Any], s: int) -> bool:
        """Return whether a disk may be replaced: while a quorum of its group keeps its memory."""
        disks, (sizes, groups) = state["disk"], LAYOUTS[self.constants.Layout]
        blank = [at for at, group in enumerate(groups) if group == groups[s] and (at == s or disks[at]["blank"])]
        kept = "replace" in self.constants.Faults and 2 * len(blank) <= sizes[groups[s]]
        return bool(("wipe" in self.constants.Faults or kept) and disks[s]["life"])

    def _data(self, state: Mapping[str, Any], s: int) -> Iterator[tuple[str, Step]]:
        source, window, store = state["source"], state["window"], state["store"][s]
        told = self.tie.told(store)
        if told is None:
            return
        if state["stream"][s]:
            number = state["stream"][s][0] - 1
            yield "ToStore", ("ToStore", {"l": store["life"], "s": s, "e": told, "n": number})
        if store["asked"] and self._connected(state, s) and store["life"] == source["life"]:
            low = max(store["resume"], store["trail"], window["trail"])
            missing = [
                n for n in range(low, store["high"] + 1) if not store["content"][n - 1] and n not in store["lost"]
            ]
            if missing:
                filled = frozenset((n - 1,) for n in missing)
                yield "Fill", ("Fill", {"l": store["life"], "s": s, "e": told, "filled": filled})

    # The environment, as in the model.

    def _slow(self, s: int) -> bool:
        return self.constants.weak("slow", s)

    def _quiet(self, state: Mapping[str, Any]) -> bool:
        return all(self._slow(s) or not back for s, back in enumerate(state["back"]))

    def _calm(self, state: Mapping[str, Any], but: int | None) -> bool:
        stores = (one for s, one in enumerate(state["store"]) if s != but)
        return self._quiet(state) and ("lag" in self.constants.Faults or not any(one["dirty"] for one in stores))

    def _connected(self, state: Mapping[str, Any], s: int) -> bool:
        source = state["source"]
        return self.constants.connected(s, source["life"], state["aside"]["source"]["life"], source["again"])

    def _prompt(self, state: Mapping[str, Any], stores: range) -> bool:
        return all(self._slow(s) or not self._awaited(state, s) for s in stores)

    def _awaited(self, state: Mapping[str, Any], s: int) -> bool:
        """Return whether a request or the first SRI to a store is under way."""
        source, store, life = state["source"], state["store"][s], state["source"]["life"]
        if source["state"] not in RUNNING or not self._connected(state, s) or not store["up"]:
            return False
        granted = any(one["kind"] == "grant" and one["life"] == life for one in state["back"][s])
        granting = store["grant"] and store["life"] == life
        unanswered = state["reg"][s]["state"] in ASKING and not granting and not granted
        return unanswered or (store["life"] == life and source["state"] == "ACTIVE" and not store["resume"])
