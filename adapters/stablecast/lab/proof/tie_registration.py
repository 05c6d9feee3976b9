"""Map states and edges of a recorded graph of `tla/Registration` to structures and steps of its first-order system.

Elements are 0 for nobody, the number of a client, and instants relative to now, which is the element `present`. All
instants that passed long ago are one element: the system only compares instants with each other. Sets of messages only
grow in a transition. So the steps of an edge end with the loss of all messages that the queues do not hold then
(`Drop`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from stablecast.lab.model.worlds.registration import RegistrationConstants
from stablecast.lab.proof.evaluation import Evaluator, Structure, Value
from stablecast.lab.proof.registration import QUEUES, registration
from stablecast.lab.proof.tie_defaults import TieDefaults

Step = tuple[str, dict[str, Value]]
"""The name of a transition, and its parameters."""
State = Mapping[str, Any]

NONE = -1
"""A timer that is not armed, in the model."""
STATES: Mapping[str, str] = {
    "IDLE": "idle",
    "REGISTERING": "waiting",
    "UNRESPONSIVE": "waiting",
    "REGISTERED": "registered",
    "RENEWING": "renewing",
    "DEAD": "dead",
}
TIMERS = ("retry", "probe", "silence", "lease")


@attrs.frozen
class RegistrationTie(TieDefaults):
    evaluator: Evaluator
    constants: RegistrationConstants
    present: int

    @classmethod
    def create(cls, constants: RegistrationConstants) -> "RegistrationTie":
        present = constants.Lease + 2
        later = frozenset((one, other) for one in constants.Shared for other in constants.Shared if one > other)
        values: dict[str, Value] = {
            "nobody": 0,
            "start": present,
            "start_horizon": present + constants.Lease,
            "later": later,
            "shared": frozenset((one,) for one in constants.Shared),
        }
        # One instant more than a lease, because time passes before instants are counted anew.
        sizes = {"Client": constants.Clients + 1, "Time": present + constants.Lease + 2}
        return cls(Evaluator(registration(), sizes, values), constants, present)

    def settled(self, structure: Structure) -> Structure:
        """Return the structure with instants counted from now."""
        evaluator = self.evaluator
        passed: int = evaluator.value(structure, "now") - self.present
        if not passed:
            return structure
        symbols = evaluator.system.vocabulary.symbols

        def shifted(name: str, value: Value) -> Value:
            if symbols[name].result != "Time":
                return value
            if isinstance(value, frozenset):
                return frozenset((*row[:-1], max(0, row[-1] - passed)) for row in value)
            return max(0, int(value) - passed)

        return tuple(shifted(name, value) for name, value in zip(evaluator.names, structure, strict=True))

    # Comparison of a state with a structure.

    def differences(self, state: State, structure: Structure) -> Iterator[str]:
        get = self.evaluator.value
        for number, client in enumerate(state["client"], 1):
            wanted, shown = self._client(number, client, structure)
            yield from (f"{name} of client {number}" for name in wanted if wanted[name] != shown[name])
            held = self._queues(state, number)
            yield from (
                f"{name} of client {number}" for name in QUEUES if held[name] != ((number,) in get(structure, name))
            )
        for name, fresh in (("wrote", True), ("wrote_late", False)):
            writes = {(one["holder"],) for one in state["unsynced"] if one["holder"] and one["fresh"] is fresh}
            if writes != set(get(structure, name)):
                yield name
        yield from self._store(state, structure)

    def _client(self, number: int, client: State, structure: Structure) -> tuple[dict[str, Any], dict[str, Any]]:
        get, kind = self.evaluator.value, STATES[client["state"]]
        wanted: dict[str, Any] = {name: name == kind for name in set(STATES.values())}
        shown: dict[str, Any] = {name: (number,) in get(structure, name) for name in wanted}
        wanted |= {"leased": client["lease"] != NONE, "probed": client["probed"] != NONE}
        shown |= {name: (number,) in get(structure, name) for name in ("leased", "probed")}
        end = self.present + self.constants.Lease
        if client["lease"] != NONE:
            wanted["lease"], shown["lease"] = self.present + client["lease"], get(structure, "lease")[number,]
        if client["probed"] != NONE:
            wanted["probe"], shown["probe"] = max(0, end - client["probed"]), get(structure, "probe_until")[number,]
        if kind in ("waiting", "renewing"):
            # The model counts the age of a request no further than the lease.
            wanted["asked"], shown["asked"] = end - client["asked"], max(self.present, get(structure, "asked")[number,])
        return wanted, shown

    def _store(self, state: State, structure: Structure) -> Iterator[str]:
        get, store = self.evaluator.value, state["store"]
        wanted: dict[str, Any] = {"up": store["up"], "dirty": bool(state["unsynced"]), "disk": state["disk"]}
        if store["up"]:
            wanted |= {"holder": store["holder"], "active": store["active"]}
            if store["holder"]:
                wanted["held"] = max(0, self.present + self.constants.Lease - store["age"])
        yield from (name for name, value in wanted.items() if value != get(structure, name))

    def _queues(self, state: State, number: int) -> dict[str, bool]:
        """Return which kinds of messages are under way between a client and the store."""
        there, back = state["toStore"][number - 1], state["toClient"][number - 1]
        now = state["client"][number - 1]["state"] == "REGISTERED"

        def has(queue: Any, kind: str, fresh: bool) -> bool:
            return any(one["kind"] == kind and one["fresh"] is fresh for one in queue)

        probe, alive = has(there, "probe", True), has(back, "alive", True)
        return {
            "fresh_ask": has(there, "ask", True),
            "late_ask": has(there, "ask", False),
            "fresh_grant": has(back, "grant", True),
            "late_grant": has(back, "grant", False),
            "probe": probe and now,
            "probe_old": probe and not now,
            "alive": alive and now,
            "alive_old": alive and not now,
        }

    # The steps of an edge.

    def steps(self, action: str, client: int, before: State, after: State) -> Iterator[Step]:
        """Yield the transitions of an edge, in order. Clients are counted from 0 here."""
        yield from self.first(action, client + 1, before)
        for number in range(1, self.constants.Clients + 1):
            kept = self._queues(after, number)
            if kept != self._queues(before, number) or number == client + 1 or action == "Sync":
                chosen = {f"kept_{name}": frozenset({(number,)} if held else ()) for name, held in kept.items()}
                yield ("Drop", {"i": number, **chosen})
            yield ("Forget", {"i": number, "t": 0})

    def first(self, action: str, number: int, state: State) -> Iterator[Step]:
        """Yield the transitions of an action before any message is lost."""
        match action:
            case "ToStore":
                yield from self._to_store(number, state)
            case "ToClient":
                yield from self._to_client(number, state)
            case "ClientTimer":
                yield from self._timers(number, state)
            case "Break":
                if state["client"][number - 1]["state"] == "REGISTERED":
                    yield ("Break", {"i": number})
            case "Start" | "Die":
                yield (action, {"i": number})
            case "StoreTimer":
                yield from self._store_timer(state)
            case "Restart":
                yield ("Restart" if state["disk"] else "Restart.empty", {})
            case "Tick":
                yield ("Tick", {"t": self.present + 1, "h": self.present + self.constants.Lease + 1})
            case "Sync" | "Crash":
                yield (action, {})

    def _to_store(self, number: int, state: State) -> Iterator[Step]:
        store, shared, message = state["store"], self.constants.Shared, state["toStore"][number - 1][0]
        known, mine = state["client"][number - 1]["state"] == "REGISTERED", {"i": number}
        if not store["up"]:
            if known:
                yield ("ToStore.down", {"i": number})
        elif message["kind"] == "ask":
            follows = {number, store["holder"]} <= shared and number > store["holder"]
            if store["holder"] in (0, number) or not store["active"] or follows:
                yield ("ToStore.ask" if message["fresh"] else "ToStore.late", {"i": number})
        elif store["holder"] == number and store["active"]:
            asks = "ToStore.probe" if known else "ToStore.probe_old"
            yield (asks if message["kind"] == "probe" else "ToStore.sign", {**mine})

    def _to_client(self, number: int, state: State) -> Iterator[Step]:
        client, store, message = state["client"][number - 1], state["store"], state["toClient"][number - 1][0]
        known, mine = client["state"], {"i": number}
        if known == "DEAD":
            if store["up"] and store["holder"] == number and number not in self.constants.Shared:
                yield ("ToClient.gone", {**mine})
        elif message["kind"] == "grant" and message["fresh"] and known != "REGISTERED":
            over = client["asked"] >= self.constants.Lease
            yield ("ToClient.again" if over else "ToClient.grant", {**mine})
        elif message["kind"] == "refuse" and message["fresh"] and known == "RENEWING":
            yield ("ToClient.refuse", {**mine})
        elif message["kind"] == "alive" and known == "REGISTERED" and client["probed"] != NONE:
            yield ("ToClient.alive", {**mine})

    def _timers(self, number: int, state: State) -> Iterator[Step]:
        """Yield what is due at a client, in the order of its timers."""
        client = state["client"][number - 1]
        kind = STATES[client["state"]]
        if client["retry"] == 0:
            kind = "waiting"
            yield ("ClientTimer.retry", {"i": number})
        if client["probe"] == 0:
            yield ("ClientTimer.probe", {"i": number})
        if client["silence"] == 0 and kind == "registered":
            kind = "renewing"
            yield ("ClientTimer.silence", {"i": number})
        if client["lease"] == 0:
            ends = {"registered": "expired", "renewing": "lapsed", "waiting": "idle"}
            yield (f"ClientTimer.{ends[kind]}", {"i": number})

    def _store_timer(self, state: State) -> Iterator[Step]:
        store, activity = state["store"], self.constants.Lease + 1
        active = store["active"] and store["age"] < activity
        if not active and store["age"] >= max(activity, self.constants.Lifetime):
            yield ("StoreTimer.over", {})
        elif store["active"] and not active:
            yield ("StoreTimer.silent", {})


@attrs.frozen
class RegistrationBounds:
    """List the steps of `tla/Registration` that the bounds of a configuration leave open in a state.

    Bounds are the order of messages, the limits of queues and writes, and the exact times of timers.
    """

    constants: RegistrationConstants
    tie: RegistrationTie

    def candidates(self, state: State) -> Iterator[tuple[str, Step]]:
        """Yield actions of the graph within the bounds, each with the first step that the system may allow for it."""
        for action, number in self._open(state):
            label = f"{action}({number})" if number else action
            yield from ((label, step) for step in list(self.tie.first(action, number, state))[:1])

    def _open(self, state: State) -> Iterator[tuple[str, int]]:
        faults, store = self.constants.Faults, state["store"]
        room = len(state["unsynced"]) < self.constants.Writes
        for number, client in enumerate(state["client"], 1):
            yield "Start", number
            if state["toStore"][number - 1] and (room or not store["up"]):
                yield "ToStore", number
            if state["toClient"][number - 1]:
                yield "ToClient", number
            if any(client[timer] == 0 for timer in TIMERS):
                yield "ClientTimer", number
            yield from ((action, number) for action in ("Break", "Die") if action.lower() in faults)
        if store["check"] == 0:
            yield "StoreTimer", 0
        yield "Sync", 0
        if "crash" in faults:
            yield "Crash", 0
            yield "Restart", 0
        if self._may_wait(state):
            yield "Tick", 0

    def _may_wait(self, state: State) -> bool:
        """Return whether messages under way may take another tick, and no timer but that of a lease is due."""
        faults = self.constants.Faults
        asked = bool(state["unsynced"]) or any(state["toStore"])
        late = "slow" in faults or not (asked or (any(state["toClient"]) and "lag" not in faults))
        due = any(client[timer] == 0 for client in state["client"] for timer in TIMERS[:-1])
        return late and not due and state["store"]["check"] != 0
