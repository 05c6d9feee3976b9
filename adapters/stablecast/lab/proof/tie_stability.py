"""Map states and edges of a recorded graph of `tla/Stability` to structures and steps of its first-order system.

A structure also holds history, which no state shows: the epochs that began, the votes, and the frozen and dead ones.
So a structure is carried along the edges of the graph. Each edge is a sequence of transitions, which all must be
enabled. The structure after the edge must agree with the state after it in everything that a state shows
(`differences`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from stablecast.lab.model.worlds.stability_stores import LAYOUTS
from stablecast.lab.proof.evaluation import Evaluator, Structure, Value
from stablecast.lab.proof.stability import stability
from stablecast.lab.proof.stability_quorums import quorums
from stablecast.lab.proof.tie_defaults import TieDefaults

Step = tuple[str, dict[str, Value]]
"""The name of a transition, and its parameters."""
Process = Mapping[str, Any]
"""The source, reg and window of one process."""

RUNNING = frozenset({"REGISTERING", "ACTIVE", "SUSPENDED"})
COUNTING = frozenset({"registered", "renewing"})


@attrs.frozen
class StabilityTie(TieDefaults):
    """Tie the graphs of one configuration.

    Elements are store s - 1, number n - 1, life l, and l * terms + t for the epoch of life l under term t.
    """

    evaluator: Evaluator
    stores: int
    terms: int
    numbers: int
    quorums: Mapping[str, tuple[frozenset[int], ...]]

    @classmethod
    def create(cls, constants: Mapping[str, Any], terms: int) -> "StabilityTie":
        """Return the tie of a configuration in whose graph terms stay below `terms`."""
        sizes, groups = LAYOUTS[constants["Layout"]]
        kinds = quorums(sizes, groups, constants["Inside"], constants["Between"])
        lives, numbers = constants["Lives"] + 1, constants["Numbers"] + 1
        epochs = range(lives * terms)
        names = {"BeginQuorum": "r", "GoOnQuorum": "c", "KeepQuorum": "k"}
        domain = {
            "Store": len(groups),
            "Life": lives,
            "Epoch": lives * terms,
            "Term": terms,
            "Number": numbers,
            **{sort: len(kinds[kind]) for sort, kind in names.items()},
        }
        values: dict[str, Value] = {
            "rivals": "rival" in constants["Faults"],
            "nobody": 0,
            "zero": 0,
            "least": 0,
            "life": frozenset((epoch, epoch // terms) for epoch in epochs),
            "term": frozenset((epoch, epoch % terms) for epoch in epochs),
            **{
                f"in_{kind}": frozenset((store, index) for index, one in enumerate(found) for store in one)
                for kind, found in kinds.items()
            },
        }
        evaluator = Evaluator(stability(), domain, values)
        return cls(evaluator, len(groups), terms, numbers, kinds)

    def epoch(self, life: int, term: int) -> int:
        return life * self.terms + term

    def told(self, record: Mapping[str, Any]) -> int | None:
        """Return the epoch that a store was told of."""
        lives = record["lives"]
        return self.epoch(lives[-1]["life"], record["told"]) if lives else None

    # Comparison of a state with a structure.

    def differences(self, state: Mapping[str, Any], structure: Structure) -> Iterator[str]:
        get = self.evaluator.value
        safe = {(epoch // self.terms, number + 1) for epoch, number in get(structure, "safe")}
        if safe != set(state["safe"]):
            yield "safe"
        running = set()
        for process in (state, state["aside"]):
            if process["source"]["state"] in RUNNING:
                running.add(process["source"]["life"])
                yield from self._process(process, structure)
        for name in ("registering", "active", "suspended"):
            if {life for (life,) in get(structure, name)} - running:
                yield name
        for index in range(self.stores):
            yield from self._store(state, index, structure)

    def _process(self, process: Process, structure: Structure) -> Iterator[str]:
        get, source, window = self.evaluator.value, process["source"], process["window"]
        life, state = source["life"], source["state"]
        if (life,) not in get(structure, state.lower()):
            yield f"{state} of life {life}"
        begun = state != "REGISTERING"
        wanted: dict[str, Any] = {"claim": source["claim"]}
        shown: dict[str, Any] = {"claim": get(structure, "claim")[life,]}
        if begun:
            wanted |= {"again": source["again"], "now": {self.epoch(life, source["term"])}}
            shown |= {
                "again": (life,) in get(structure, "again"),
                "now": {epoch for owner, epoch in get(structure, "now") if owner == life},
            }
            wanted["first"] = source["resume"] - 1
            shown["first"] = get(structure, "first")[life,]
            sent = range(source["resume"] - 1, window["next"] - 1)
            wanted["released"] = set(range(source["resume"] - 1, window["trail"] - 1))
            shown["released"] = {n for n in sent if (life, n) in get(structure, "released")}
            wanted["stable"] = {number - 1 for number in window["stable"]}
            shown["stable"] = {n for n in sent if (life, n) in get(structure, "stable")} - wanted["released"]
            wanted["own"] = {(n, self._owner(source["lives"], n)) for n in range(self.numbers)}
            shown["own"] = {(n, owner) for one, n, owner in get(structure, "own") if one == life}
        for index, registration in enumerate(process["reg"]):
            wanted[f"reg {index}"] = (
                registration["state"] in COUNTING,
                registration["grant"]["term"],
                registration["owes"],
            )
            shown[f"reg {index}"] = (
                (life, index) in get(structure, "counts"),
                get(structure, "granted_term")[life, index],
                (life, index) in get(structure, "owes"),
            )
            wanted[f"blank {index}"] = registration["grant"]["blank"]
            shown[f"blank {index}"] = (life, index) in get(structure, "granted_blank")
            if not begun:
                wanted[f"told {index}"] = registration["grant"]["told"]
                shown[f"told {index}"] = get(structure, "granted_told")[life, index]
                yield from self._reported(life, index, registration["grant"], structure)
            inside = range(window["trail"] - 1, window["next"] - 1)
            wanted[f"acked {index}"] = {number - 1 for number in window["acked"][index]}
            shown[f"acked {index}"] = {n for n in inside if (life, index, n) in get(structure, "acked")}
        yield from (f"{name} of life {life}" for name in wanted if wanted[name] != shown[name])

    def _reported(self, life: int, index: int, grant: Mapping[str, Any], structure: Structure) -> Iterator[str]:
        """Yield numbers in use that a grant reports otherwise than a structure."""
        get = self.evaluator.value
        used = {n for one, s, n in get(structure, "granted_used") if (one, s) == (life, index)}
        held = {n for one, s, n, _ in get(structure, "granted_held") if (one, s) == (life, index)}
        if used | held and max(used | held) >= max(grant["high"], grant["known"]):
            yield f"numbers that {index} reports"
        if grant["known"] and used != set(range(grant["known"])):
            yield f"numbers that {index} knows"

    def _store(self, state: Mapping[str, Any], index: int, structure: Structure) -> Iterator[str]:
        get, store = self.evaluator.value, state["store"][index]
        if store["up"] != ((index,) in get(structure, "up")):
            yield f"up of {index}"
        views = [("disk_", "disk_content", state["disk"][index])]
        if store["up"]:
            views.append(("store_", "content", store))
            if (store["resume"] != 0) != ((index,) in get(structure, "store_begun")):
                yield f"begun of {index}"
            if store["grant"] != ((index,) in get(structure, "granting")):
                yield f"granting of {index}"
        for prefix, content, record in views:
            epoch = self.told(record)
            wanted = (
                {record["life"]} - {0},
                record["term"],
                set() if epoch is None else {epoch},
                record["told"],
                {(n, life) for n, life in enumerate(record["content"]) if life},
                record["blank"],
                set(range(record["known"])),
            )
            shown = (
                {life for one, life in get(structure, f"{prefix}life") if one == index},
                get(structure, f"{prefix}term")[index,],
                {epoch for one, epoch in get(structure, f"{prefix}told") if one == index},
                get(structure, f"{prefix}told_term")[index,],
                {(n, life) for one, n, life in get(structure, content) if one == index},
                (index,) in get(structure, f"{prefix}blank"),
                {n for one, n in get(structure, f"{prefix}used") if one == index},
            )
            if wanted != shown:
                yield f"{prefix}* of {index}: {wanted} is not {shown}"
        yield from self._answers(state, index, structure)

    def _answers(self, state: Mapping[str, Any], index: int, structure: Structure) -> Iterator[str]:
        """Yield answers in flight to running processes that a structure lacks; it may have more acknowledgements."""
        get = self.evaluator.value
        life = state["source"]["life"]
        if state["source"]["state"] not in RUNNING:
            return
        after = False
        for message in state["back"][index]:
            if message["life"] != life:
                continue
            if message["kind"] == "grant":
                after = True
                grant = message["grant"]
                shown = (
                    get(structure, "grant_term")[index, life],
                    get(structure, "grant_told")[index, life],
                    (index, life) in get(structure, "grant_blank"),
                )
                wanted = (grant["term"], grant["told"], grant["blank"])
                if (index, life) not in get(structure, "grant") or shown != wanted:
                    yield f"grant of {index}"
            else:
                known = get(structure, "ack_after" if after else "ack")
                if any((index, life, number - 1) not in known for number in message["numbers"]):
                    yield f"acks of {index}"
        if after != ((index, life) in get(structure, "grant")):
            yield f"a grant of {index}"

    def _owner(self, lives: tuple[Any, ...], number: int) -> int:
        owners: list[int] = [one["life"] for one in lives if one["first"] <= number + 1]
        return owners[-1] if owners else 0

    # The steps of an edge.

    def steps(self, action: str, store: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        """Yield the transitions of an edge, in order; none if nothing that a structure knows changes."""
        life = before["source"]["life"]
        if action == "Begin":
            yield ("Begin", {"l": after["source"]["life"]})
        elif action == "Stop":
            yield ("Stop", {"l": life})
        elif action == "Turn":
            if before["source"]["state"] in ("ACTIVE", "SUSPENDED"):
                yield from self._judged(before["source"], before, after)
                yield ("Turn", {"l": life})
        elif action == "Wait":
            yield from self._waited(before, after)
        elif action == "Send":
            yield ("Send", {"l": life, "n": before["window"]["next"] - 1})
        elif action != "Lose":
            yield from self._AT_A_STORE[action](self, store, before, after)
        if action in ("Wait", "ToSource", "Crash"):
            yield from self._reviewed(before, after)

    def _waited(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        pairs = enumerate(zip(before["reg"], after["reg"], strict=True))
        left = [index for index, (old, new) in pairs if old["state"] in COUNTING and new["state"] not in COUNTING]
        parameters: dict[str, Value] = {"l": before["source"]["life"], "dropped": frozenset((one,) for one in left)}
        if before["source"]["state"] == "ACTIVE" and after["source"]["state"] == "SUSPENDED":
            yield ("Wait.suspended", parameters)
        else:
            rest = {index for index, one in enumerate(before["reg"]) if one["state"] in COUNTING} - set(left)
            yield ("Wait", {**parameters, "c": self.within("c", rest)})

    def within(self, kind: str, stores: set[int]) -> int:
        """Return a quorum of a kind within stores; 0 if there is none."""
        return next((index for index, one in enumerate(self.quorums[kind]) if one <= stores), 0)

    def _judged(self, source: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        for life, number in sorted(set(after["safe"]) - set(before["safe"])):
            held = {s for s, one in enumerate(before["window"]["acked"]) if number in one}
            held |= {s for s, one in enumerate(after["window"]["acked"]) if number in one}
            if "heard" in before:
                held |= {before["heard"][0]} if number in before["heard"][1] else set()
            yield (
                "Judge",
                {"l": life, "e": self.epoch(life, source["term"]), "n": number - 1, "k": self.within("k", held)},
            )
        same = next((one for one in (after, after["aside"]) if one["source"]["life"] == source["life"]), None)
        if same is not None and same["source"]["state"] in RUNNING:
            for number in range(before["window"]["trail"], same["window"]["trail"]):
                yield ("Judge.released", {"l": source["life"], "n": number - 1})

    def _reviewed(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        old, new = before["source"], after["source"]
        if old["state"] in ("ACTIVE", "SUSPENDED"):
            yield from self._judged(old, before, after)
        settled = {
            index
            for index, one in enumerate(after["reg"])
            if one["state"] in COUNTING and one["grant"]["term"] >= new["claim"] and not one["grant"]["blank"]
        }
        life = new["life"]
        if old["state"] == "REGISTERING" and new["state"] == "ACTIVE":
            yield from self._resumed(before, after, settled)
        elif old["state"] == "SUSPENDED" and new["state"] == "ACTIVE":
            epoch, before_it = self.epoch(life, new["term"]), self.epoch(life, old["term"])
            if epoch == before_it:
                yield ("Return", {"l": life, "e": epoch, "c": self.within("c", settled)})
            else:
                # The registrations that made it enough count as renewed at once.
                yield ("Return.renewed", {"l": life, "e": epoch, "e0": before_it, "r": self.within("r", settled)})

    def _resumed(self, before: Mapping[str, Any], after: Mapping[str, Any], settled: set[int]) -> Iterator[Step]:
        source = after["source"]
        life = source["life"]
        grants = {index: one["grant"] for index, one in enumerate(before["reg"])} | before.get("granted", {})
        counted = [index for index, one in enumerate(after["reg"]) if one["state"] in COUNTING]
        voters = [index for index in counted if not grants[index]["blank"]]
        teller = max(voters, key=lambda index: (grants[index]["told"], -index))
        parameters: dict[str, Value] = {
            "l": life,
            "e": self.epoch(life, source["term"]),
            "r": self.within("r", settled),
            "n": source["resume"] - 1,
        }
        told = self.told(grants[teller])
        if told is None:
            yield ("Resume", parameters)
        else:
            yield ("Resume.followed", {**parameters, "s": teller, "e0": told})

    def _asked(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        yield self.asked(s, before)

    def asked(self, s: int, state: Mapping[str, Any]) -> Step:
        """Return the step by which a request reaches a store."""
        source, store = state["source"], state["store"][s]
        life, told = source["life"], self.told(store)
        parameters: dict[str, Value] = {"l": life, "s": s}
        own = source["again"] and told is not None and told // self.terms == life
        if own and told is not None:
            parameters |= {"e": self.epoch(life, source["term"]), "e2": told}
        if store["life"] == life:
            return ("Ask.affirmed" if own else "Ask", parameters)
        parameters["t"] = max(store["term"] + 1, source["claim"])
        return ("Ask.returned" if own else "Ask.moved", parameters)

    def _informed(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        source, store = before["source"], before["store"][s]
        if store["resume"]:
            return
        life, told = source["life"], self.told(store)
        parameters: dict[str, Value] = {"l": life, "s": s, "e": self.epoch(life, source["term"])}
        if told is None:
            yield ("Inform.first", parameters)
        elif told // self.terms == life:
            yield ("Inform", {**parameters, "e2": told})
        else:
            owners = [(self._owner(store["lives"], n), self._owner(source["lives"], n)) for n in range(self.numbers)]
            parting = next(n for n, (ours, theirs) in enumerate(owners) if ours != theirs)
            ours, theirs = owners[parting]
            yield ("Inform.cut", {**parameters, "e2": told, "n": parting, "l2": ours, "l3": theirs})
        yield from self._told(s, before, after)

    def _told(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        """Yield that a store acknowledges what is new in its answers, after any grant in flight."""
        store, disk = after["store"][s], after["disk"][s]
        news = self._news(s, store["life"], before, after)
        if news:
            epoch, kept = self.told(store), self.told(disk)
            assert epoch is not None
            assert kept is not None
            granted = any(one["kind"] == "grant" and one["life"] == store["life"] for one in after["back"][s])
            numbers = frozenset((number - 1,) for _, number in news)
            yield (
                "Tell.after" if granted else "Tell",
                {"s": s, "l": store["life"], "e": epoch, "e2": kept, "told": numbers},
            )

    def _news(self, s: int, life: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> set[tuple[int, int]]:
        """Return what a store newly acknowledges to a running life."""
        if not any(
            one["life"] == life and one["state"] in RUNNING for one in (after["source"], after["aside"]["source"])
        ):
            return set()  # Nobody will receive it.
        return self._acks(after["back"][s], life) - self._acks(before["back"][s], life)

    @staticmethod
    def _acks(queue: tuple[Any, ...], life: int) -> set[tuple[int, int]]:
        """Return what is acknowledged to a life, as (grants before it in the queue, number)."""
        grants, found = 0, set()
        for message in queue:
            if message["life"] == life:
                if message["kind"] == "grant":
                    grants += 1
                else:
                    found |= {(grants, number) for number in message["numbers"]}
        return found

    def _stored(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        old, new = before["store"][s], after["store"][s]
        news = [n for n, life in enumerate(new["content"]) if life != old["content"][n]]
        if news:
            epoch = self.told(old)
            assert epoch is not None
            yield ("ToStore", {"l": old["life"], "s": s, "e": epoch, "n": news[0]})
        yield from self._told(s, before, after)

    def _filled(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        old, new = before["store"][s], after["store"][s]
        news = frozenset((n,) for n, life in enumerate(new["content"]) if life != old["content"][n])
        if news:
            epoch = self.told(old)
            assert epoch is not None
            yield ("Fill", {"l": old["life"], "s": s, "e": epoch, "filled": news})
        yield from self._told(s, before, after)

    def _synced(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        store = before["store"][s]
        if not store["grant"]:
            yield ("Sync", {"s": s})
            yield from self._told(s, before, after)
            return
        life = store["life"]
        news = self._news(s, life, before, after)
        grants = sum(one["kind"] == "grant" and one["life"] == life for one in after["back"][s])
        first = frozenset((number - 1,) for place, number in news if place < grants)
        epoch = self.told(store)
        if first and epoch is not None:
            yield ("Sync.told", {"s": s, "l": life, "e": epoch, "told": first})
        else:
            yield ("Sync.granted", {"s": s, "l": life})
        again = frozenset((number - 1,) for place, number in news if place >= grants)
        if again:
            assert epoch is not None
            yield ("Tell.after", {"s": s, "l": life, "e": epoch, "e2": epoch, "told": again})

    def _heard(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        message, source = before["back"][s][0], before["source"]
        life, state = source["life"], source["state"]
        if state not in RUNNING or message["life"] != life:
            if message["kind"] == "grant":
                yield ("ToSource.unheard", {"l": message["life"], "s": s})
            return
        if message["kind"] == "acks":
            between = state == "SUSPENDED" and source["claim"] > source["term"]
            if not before["reg"][s]["owes"] and not between and state != "REGISTERING":
                heard = frozenset((number - 1,) for number in message["numbers"])
                yield ("ToSource.acks", {"l": life, "s": s, "heard": heard})
                before["heard"] = (s, message["numbers"])  # type: ignore[index]
        elif state == "REGISTERING":
            yield ("ToSource.grant", {"l": life, "s": s})
            before["granted"] = {s: message["grant"]}  # type: ignore[index]
        elif self._is_over(s, before, message["grant"]):
            yield ("ToSource.over", {"l": life, "s": s})
        else:
            epoch, grant = self.epoch(life, source["term"]), message["grant"]
            lost = frozenset((n,) for n in range(grant["high"], self.numbers))
            proven = not source["again"] or grant["told"] == source["term"]
            name = "ToSource.proven" if proven else "ToSource.owing"
            yield (name, {"l": life, "s": s, "e": epoch, "lost": lost})

    def _is_over(self, s: int, state: Mapping[str, Any], grant: Mapping[str, Any]) -> bool:
        """Return whether a grant shows a life that returns that another one came after it."""
        source, known = state["source"], state["reg"][s]["grant"]["term"]
        counted = known != 0 and grant["term"] > max(known, source["term"], source["claim"])
        return bool(source["state"] == "SUSPENDED" and (grant["told"] > source["term"] or counted))

    def first_heard(self, s: int, state: Mapping[str, Any]) -> Iterator[Step]:
        """Yield the step by which the source receives the next answer of a store."""
        return self._heard(s, dict(state), state)

    def first_informed(self, s: int, state: Mapping[str, Any]) -> Iterator[Step]:
        """Yield the step by which a store learns where the source's life resumes."""
        yield from list(self._informed(s, state, state))[:1]

    def _crashed(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        yield ("Crash", {"s": s})

    def _wiped(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        yield ("Wipe", {"s": s})

    def _restarted(self, s: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Step]:
        disk = before["disk"][s]
        epoch = self.told(disk)
        if after["store"][s]["resume"] and epoch is not None:
            yield ("Restart.begun", {"s": s, "e": epoch, "l": disk["life"]})
        else:
            yield ("Restart", {"s": s})

    _AT_A_STORE: ClassVar = {
        "Ask": _asked,
        "Inform": _informed,
        "ToStore": _stored,
        "Fill": _filled,
        "Sync": _synced,
        "ToSource": _heard,
        "Crash": _crashed,
        "Restart": _restarted,
        "Wipe": _wiped,
    }
