"""Judge a history by the files that its processes left. The module imports nothing from the judged programs.

A *run* is one start of one program. The payload of each message begins with its name. `judge` reads the lines of all
histories in any order, and the standard error of each run. A line is a dictionary with `is`, `run` and `t` (ns of the
monotonic clock, which all processes share). `judge` returns one sentence for each violation.

| rule | statement |
|---|---|
| lost | every stable message is delivered to every receiver, including a late one |
| reused | one number of one owner and topic belongs to one stable message |
| changed | a stable number is delivered with its message; payloads arrive as they were sent |
| order | a run gets stable messages of one owner in the order of their numbers, and within one life all messages |
| twice | a run gets no message twice |
| replaced | a reader returns no message whose number is stable for another one |
| skipped | a reader leaves out no stable message below one that it returns |
| confirmed | a message is confirmed only after the confirming receiver consumed it |
| hang | after all faults each source becomes silent with everything stable, and all stable messages are delivered |
| repeated | a message that was consumed 0.11 s before its receiver ended is not delivered to a later run |
| divided | while no member of a group fails, each message is processed once; in the end each was |
| blocked | messages become stable while only a minority of the disks fails |
| forked | a forked child can use no client of its parent, and each call there says so |
| ended | no process ends unless the plan ends it or takes a necessary resource from it |
| traceback | no process writes a traceback or an unhandled exception |
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Line = Mapping[str, Any]
TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|Exception ignored|never retrieved|was never awaited|Fatal Python error"
)
ACKNOWLEDGED_NS = 110_000_000
"""Time after which a consumed message is acknowledged, besides the time for which the application keeps its loop."""
REFUSALS = frozenset({"MisuseError", "Closed"})
"""The errors of a call in a forked child."""
ENDS = frozenset({"kill", "power", "close"})
"""The faults that end one program, and change nothing about the others."""
LOSSES = frozenset({"full", "fail", "rot", "wipe", "restore"})
"""The faults after which a store may lack an acknowledgement for ever."""
ALL = "all"
"""The one who suffers a fault that keeps acknowledgements from all stores."""
RETURNED_NS = 2_000_000_000
"""Time after a fault in which the connections and the registrations of a receiver return."""
ROUTED_NS = 6_000_000_000
"""Time after a fault of a router in which it returns: it listens for 2.5 s, and then tells routes and finds sources."""
LINKED_NS = 10_000_000_000
"""Time in which linked routers find each other besides: pauses of calls, and a link that is left out for a while."""
QUORUM = 2
"""Stores of three that must know a receiver before messages are kept for it."""
REGISTERED_NS = 1_000_000_000
"""Time that the stores have to make a registration durable, in a world without faults."""
HOT = "hot/"
"""The begin of the names of messages with hot numbers, which several owners send."""
SHOWN = 3
"""Number of examples in one sentence."""


@dataclass
class Verdict:
    """The violations, and the numbers of judged messages."""

    violations: list[str] = field(default_factory=list)
    sent: int = 0
    stable: int = 0
    delivered: int = 0
    confirmed: int = 0

    def add(self, rule: str, text: str) -> None:
        self.violations.append(f"{rule}: {text}")


@dataclass
class HistoryFacts:
    """The lines of a history, indexed for the rules."""

    owner: dict[str, tuple[str, str]] = field(default_factory=dict)  # owner and topic by stream
    number: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))  # by stream
    stable: dict[tuple[str, str], dict[int, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    nameless: dict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))
    stable_ids: set[str] = field(default_factory=set)
    delivered: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))  # by run
    consumed: dict[tuple[str, str], int] = field(default_factory=dict)  # time by run and message
    consumed_at: dict[str, dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )  # times by receiver and message
    longest: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # time (ns) of a kept loop, by run
    runs: dict[str, tuple[str, int]] = field(default_factory=dict)  # role and begin by run
    groups: set[str] = field(default_factory=set)  # receivers whose members share the messages
    told: frozenset[str] = frozenset()  # receivers whose applications tell when they let go of a message
    receiver_of: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))  # by RegID
    confirmed: list[Line] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    marks: list[Line] = field(default_factory=list)
    sent_at: dict[str, int] = field(default_factory=dict)  # by message
    registered_at: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))  # by receiver and store
    paced: bool = False
    kept: dict[str, int] = field(default_factory=dict)  # messages that stores keep at least, by program; "": of all
    within: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    renewed: bool = False  # each run of a receiver has other RegIDs, and each life that it follows
    granted: dict[tuple[str, str, int], dict[int, int]] = field(
        default_factory=lambda: defaultdict(dict)
    )  # the first time of each RegID, by run, topic and store
    reported: dict[str, list[tuple[str, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )  # topic and numbers of losses that a receiver reported, by receiver
    beyond: dict[str, list[str]] = field(default_factory=dict)  # stores in another domain, by program of a receiver
    routers: list[str] = field(default_factory=list)  # the hosts between the domains
    routed_ns: int = ROUTED_NS
    departed: str = ""  # the owner whose earlier identities deregistered

    def kept_of(self, owner: tuple[str, str]) -> int:
        """Return how many of the newest messages of an owner stores keep at least; 0: all of them."""
        return self.kept.get(owner[0].partition("/")[0], self.kept.get("", 0))

    def numbers_of(self, owner: tuple[str, str]) -> list[tuple[int, str]]:
        """Return the numbers and names of what an owner sent, in order."""
        streams = [stream for stream, its in self.owner.items() if its == owner]
        return sorted(pair for stream in streams for pair in self.number[stream].items())

    def newest_of(self, owner: tuple[str, str]) -> set[str]:
        """Return the newest messages of an owner, of which the stores keep all within their limit."""
        if owner not in self.within:
            self.within[owner] = {name for _, name in self.numbers_of(owner)[-self.kept_of(owner) :]}
        return self.within[owner]

    def exceeds(self, owner: tuple[str, str]) -> bool:
        """Return whether an owner sent more than stores keep."""
        kept = self.kept_of(owner)
        return bool(kept) and len(self.numbers_of(owner)) + len(self.nameless[owner]) > kept


def gather(lines: Iterable[Line]) -> HistoryFacts:
    facts = HistoryFacts(lines=sorted(lines, key=lambda line: int(line["t"])))
    announced = []
    for line in facts.lines:
        what = line["is"]
        if "stream" in line:
            facts.owner[line["stream"]] = (line["owner"], line["topic"])
        if what == "sent":
            facts.number[line["stream"]].update({int(number): name for number, name in line["items"]})
            facts.sent_at |= dict.fromkeys((name for _, name in line["items"]), line["t"])
        elif what == "stable":
            announced.append(line)
        elif what == "delivered":
            facts.delivered[line["run"]].append(line)
            if "member" in line:
                facts.groups.add(line["receiver"])
        elif what == "consumed":
            _note_consumed(facts, line)
        elif what == "begin":
            facts.runs[line["run"]] = (line["role"], line["t"])
        elif what == "reg-id":
            facts.receiver_of[line["reg_id"]].add(line["receiver"])
            facts.registered_at[line["receiver"]].setdefault(line["store"], line["t"])
            facts.granted[line["run"], line["topic"], line["store"]].setdefault(line["reg_id"], line["t"])
        elif what == "confirmed":
            facts.confirmed.append(line)
        elif what in {"paced", "limited", "departed", "event", "domains"}:
            _note_condition(facts, line)
        elif what in {"fault", "heal", "ended", "hang", "prompt", "forked"}:
            facts.marks.append(line)
    for line in announced:
        _name_stable(facts, line)
    _note_untold(facts)
    return facts


def _note_condition(facts: HistoryFacts, line: Line) -> None:
    """Note what a condition of the guarantees rests on."""
    match line["is"]:
        case "paced":
            facts.paced = True
        case "limited":
            facts.kept[line.get("owner", "")] = line["messages"]
            facts.renewed = not line.get("returns", True)
        case "domains":
            facts.routers, facts.beyond = line["routers"], line["beyond"]
            facts.routed_ns += LINKED_NS if line["linked"] else 0
        case "departed":
            facts.departed = line["owner"]
        case "event" if "last" in line:
            facts.reported[line["receiver"]].append((line["topic"], line["first"], line["last"]))


def _note_consumed(facts: HistoryFacts, line: Line) -> None:
    run, kept = line["run"], int(line.get("kept", 0) * 1e9)
    facts.longest[run] = max(facts.longest[run], kept)
    for name in line["ids"]:
        facts.consumed[run, name] = line["t"]
        facts.consumed_at[line["receiver"]][name].append(line["t"])


def _note_untold(facts: HistoryFacts) -> None:
    """Note what applications processed that never tell when they let go of a message: they write it down then."""
    facts.told = frozenset(facts.consumed_at)
    for line in (line for lines in facts.delivered.values() for line in lines if line["receiver"] not in facts.told):
        _note_consumed(facts, {**line, "ids": [line["id"]]})


def _name_stable(facts: HistoryFacts, line: Line) -> None:
    stream = line["stream"]
    owner = facts.owner[stream]
    for number in range(line["first"], line["last"] + 1):
        name = facts.number[stream].get(number)
        if name is None:
            # A fragment of a large message, or the source was killed before it wrote the name. Nothing is promised for
            # the fragments of a message that was not sent completely.
            if not line.get("large"):
                facts.nameless[owner].add(number)
        else:
            facts.stable[owner][number].add(name)
            facts.stable_ids.add(name)


def owner_of(facts: HistoryFacts, name: str) -> tuple[str, str]:
    """Return the owner and topic of a message, by its name `STREAM:COUNT`."""
    return facts.owner.get(name.rpartition(":")[0], ("nobody", ""))


def judge(lines: Iterable[Line], errors: Mapping[str, str], receivers: Sequence[str]) -> Verdict:
    """Judge a history.

    Args:
        lines: What the applications and the history itself wrote.
        errors: What each run wrote on standard error.
        receivers: The receivers to which everything stable is due.
    """
    facts = gather(lines)
    verdict = Verdict(
        sent=sum(map(len, facts.number.values())),
        stable=len(facts.stable_ids),
        delivered=sum(map(len, facts.delivered.values())),
        confirmed=len(facts.confirmed),
    )
    _reused(facts, verdict)
    _lost(facts, verdict, receivers)
    for run, delivered in facts.delivered.items():
        _one_run(facts, verdict, run, delivered)
        if any(line.get("read") for line in delivered):
            _reader(facts, verdict, run, delivered)
    _confirmed(facts, verdict)
    _blocked(facts, verdict)
    for receiver in sorted(facts.groups):
        _divided(facts, verdict, receiver)
    for mark in facts.marks:
        if mark["is"] == "prompt" and mark.get("returns", True):
            for receiver in sorted(facts.told):
                _repeated(facts, verdict, receiver, mark)
    for mark in facts.marks:
        if mark["is"] in {"ended", "hang"}:
            verdict.add(mark["is"], mark["text"])
        elif mark["is"] == "forked" and (wrong := set(mark["answers"].values()) - REFUSALS):
            verdict.add("forked", f"calls in a child of {mark['run']} ended with {_some(wrong)}")
    for run, text in sorted(errors.items()):
        found = [line for line in text.splitlines() if TRACEBACK.search(line)]
        if found:
            lines_ = [line for line in text.splitlines() if line.strip()]
            verdict.add("traceback", f"{run} wrote {len(found)} of them; its last line is: {lines_[-1][:300]}")
    return verdict


def _some(items: Iterable[object]) -> str:
    found = sorted(map(str, items))
    return ", ".join(found[:SHOWN]) + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")


def _reused(facts: HistoryFacts, verdict: Verdict) -> None:
    for (owner, topic), numbers in facts.stable.items():
        reused = {number: names for number, names in numbers.items() if len(names) > 1}
        if reused:
            number = min(reused)
            verdict.add(
                "reused",
                f"{len(reused)} numbers of {owner} on {topic} belong to two stable messages each, "
                f"first {number}: {_some(reused[number])}",
            )


def undelivered(facts: HistoryFacts, receiver: str) -> tuple[set[str], dict[str, set[int]]]:
    """Return what is stable and was never delivered to a receiver: names, and numbers without a name by owner."""
    lines = [line for run in facts.delivered.values() for line in run if line["receiver"] == receiver]
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for line in lines:
        numbers[owner_of(facts, line["id"])].update(range(line["first"], line["number"] + 1))
    unseen = {
        owner[0]: {number for number in wanted if number & 0xFFFF_FFFF not in numbers[owner]}
        for owner, wanted in facts.nameless.items()
    }
    # A member may die with a message in hand. So a group has got what one of its members has processed.
    got = facts.consumed_at[receiver].keys() if receiver in facts.groups else {line["id"] for line in lines}
    missing = facts.stable_ids - got
    if facts.paced:  # Stores keep a message for the receivers that are registered when it arrives, and for no other.
        known = [*facts.registered_at[receiver].values()][QUORUM - 1 : QUORUM]
        # It came after it was sent, and an acknowledgement may be late, by a cut path for one.
        missing = {name for name in missing if known and facts.sent_at[name] > known[0] + REGISTERED_NS}
    missing = _not_released(facts, missing, receiver, lines)
    if facts.departed:
        unseen = {}  # A number without a name stands for no message whose owner is known,
    limited = {owner[0] for owner in facts.nameless if facts.exceeds(owner)}  # or its age.
    return missing, {owner: some for owner, some in unseen.items() if some and owner not in limited}


def _not_released(facts: HistoryFacts, missing: set[str], receiver: str, delivered: Sequence[Line]) -> set[str]:
    """Return what is missing at a receiver although stores kept it, or although the receiver was told of no loss.

    A receiver that returns after limits let go of messages reports them as lost. A new one begins above them, and so
    does one that deregistered, or got another RegID.
    """
    left = {name for name in missing if not _is_released(facts, name)}
    got: dict[tuple[str, str], dict[object, list[int]]] = defaultdict(lambda: defaultdict(list))
    for line in delivered:
        got[owner_of(facts, line["id"])][_registration(facts, line)].append(line["number"])
    for owner in {owner_of(facts, name) for name in missing - left if not _has_departed(facts, name)}:
        before = -1
        for number, name in facts.numbers_of(owner):
            told = any(
                topic == owner[1] and first <= number and before < last
                for topic, first, last in facts.reported[receiver]
            )
            runs = got[owner].values()
            within = any(min(some) < number < max(some) for some in runs)
            above = bool(runs) and all(max(some) < number for some in runs)
            if name in missing and (within or above) and not told:
                left.add(name)
            before = max(before, number)
    return left


def _registration(facts: HistoryFacts, delivered: Line) -> object:
    """Return what is the same for all messages that stores gave a receiver which they know as one.

    A receiver without a session id or RegIDs is promised nothing. Stores take it for a new one in each run, and in each
    life that it follows.
    """
    run = delivered["run"]
    if facts.renewed:
        where = run, owner_of(facts, delivered["id"])[1]
        stores = [reg_ids.values() for (*known, _), reg_ids in facts.granted.items() if (*known,) == where]
        granted = max((sum(at <= delivered["t"] for at in reg_ids) for reg_ids in stores), default=0)
        return run, granted, delivered["life"]
    program, begun = _program(run), facts.runs.get(run, ("", 0))[1]
    return sum(
        mark["is"] == "fault" and mark.get("do") == "leave" and mark["who"] == program and mark["t"] < begun
        for mark in facts.marks
    )


def _is_released(facts: HistoryFacts, name: str) -> bool:
    """Return whether stores may have released a stable message.

    A limit releases the oldest messages. A source that deregisters takes its messages with it.
    """
    owner = owner_of(facts, name)
    return _has_departed(facts, name) or (bool(facts.kept_of(owner)) and name not in facts.newest_of(owner))


def _has_departed(facts: HistoryFacts, name: str) -> bool:
    """Return whether the source of a message deregistered."""
    one = owner_of(facts, name)[0].partition("/")[0]
    return one != facts.departed and _sender(one) == _sender(facts.departed)


def _sender(owner: str) -> str:
    """Return the program of an owner, which is another owner after it deregistered: `source after 1`."""
    return owner.partition(" ")[0]


def _lost(facts: HistoryFacts, verdict: Verdict, receivers: Sequence[str]) -> None:
    for receiver in receivers:
        missing, unseen = undelivered(facts, receiver)
        if missing:
            verdict.add("lost", f"{receiver} never got {len(missing)} stable messages: {_some(missing)}")
        for owner, some in unseen.items():
            verdict.add("lost", f"{receiver} never got number {_some(some)} of {owner}, which was stable")


def _one_run(facts: HistoryFacts, verdict: Verdict, run: str, delivered: Sequence[Line]) -> None:
    """Judge the rules about one run of a receiver: order, duplicates and payloads."""
    seen: set[str] = set()
    again: list[str] = []
    newest: dict[tuple[str, str], tuple[int, str]] = {}
    newest_of_life: dict[tuple[tuple[str, str], int], int] = {}
    back: list[str] = []
    changed: list[str] = []
    for line in delivered:
        name, number = line["id"], line["number"]
        owner = owner_of(facts, name)
        if not line["whole"]:
            changed.append(name)
        if name in seen:
            again.append(name)
        seen.add(name)
        if "member" in line:  # Shares are independent of each other.
            continue
        life = (owner, line["life"])
        numbered = name in facts.stable_ids and not name.startswith(HOT)
        if numbered and name not in facts.stable[owner].get(number, ()):
            changed.append(f"{name} as number {number}")
        if line.get("unordered"):
            continue
        if number <= newest_of_life.get(life, -1):
            back.append(f"{name} ({number} after {newest_of_life[life]} of the same life)")
        newest_of_life[life] = max(number, newest_of_life.get(life, -1))
        if numbered:
            if number <= newest.get(owner, (-1, ""))[0]:
                back.append(f"{name} ({number} after {newest[owner][0]}: {newest[owner][1]})")
            newest[owner] = max((number, name), newest.get(owner, (-1, "")))
    if changed:
        verdict.add("changed", f"{run} got {len(changed)} messages that differ from the sent ones: {_some(changed)}")
    if again:
        verdict.add("twice", f"{run} got {len(again)} messages again: {_some(again)}")
    if back:
        verdict.add("order", f"{run} got {len(back)} messages after later ones: {_some(back)}")


def _reader(facts: HistoryFacts, verdict: Verdict, run: str, delivered: Sequence[Line]) -> None:
    """Judge the rules about one run of a reader, which returns the stable messages of each source and no others."""
    replaced: list[str] = []
    newest: dict[tuple[str, str], int] = {}
    for line in delivered:
        owner, number = owner_of(facts, line["id"]), line["number"]
        newest[owner] = number
        others = facts.stable[owner].get(number, set()) - {line["id"]}
        replaced += [f"{line['id']} as number {number} of {one}" for one in others]
    seen = {line["id"] for line in delivered}
    skipped = [
        name
        for owner, stop in newest.items()
        for number, names in facts.stable[owner].items()
        for name in names
        if number < stop and name not in seen and not _is_released(facts, name)
    ]
    if replaced:
        verdict.add("replaced", f"{run} read {len(replaced)} messages that are not stable: {_some(replaced)}")
    if skipped:
        verdict.add("skipped", f"{run} left {len(skipped)} stable messages out: {_some(skipped)}")


def _confirmed(facts: HistoryFacts, verdict: Verdict) -> None:
    wrong: dict[str, list[str]] = defaultdict(list)
    for line in facts.confirmed:
        receivers = facts.receiver_of.get(line["reg_id"], set())
        for number in range(line["first"], line["last"] + 1):
            name = facts.number[line["stream"]].get(number)
            if name is None:
                continue
            times = [
                at for receiver in receivers or facts.consumed_at for at in facts.consumed_at[receiver].get(name, ())
            ]
            if not times or min(times) > line["t"]:
                wrong[_some(receivers) or "any receiver"].append(f"{name} ({'later' if times else 'never'})")
    for receiver, names in wrong.items():
        text = f"{len(names)} messages were confirmed before {receiver} consumed them: {_some(names)}"
        verdict.add("confirmed", text)


def _repeated(facts: HistoryFacts, verdict: Verdict, receiver: str, prompt: Line) -> None:
    """Judge the rule `repeated` for one receiver.

    An acknowledgement covers all messages before. In arrival order it may wait for the recovery of a message that no
    line tells, so that is not judged. `prompt` says by how many ns other work on the machine may delay one (`late`),
    and how many stores the others make up for (`spare`).
    """
    late = prompt.get("late", 0)
    runs = {run: lines for run, lines in facts.delivered.items() if lines[0]["receiver"] == receiver}
    acknowledged: dict[str, dict[str, float]] = defaultdict(dict)  # the consumption by message and run
    for run, lines in runs.items():
        end = _end(facts, run) - ACKNOWLEDGED_NS - facts.longest[run] - late
        through: dict[tuple[str, str], float] = defaultdict(int)
        for line in lines:
            owner, name = owner_of(facts, line["id"]), line["id"]
            through[owner] = max(through[owner], facts.consumed.get((run, name), float("inf")))
            if name in facts.stable_ids and through[owner] <= end:
                acknowledged[name][run] = through[owner]
    troubles = _troubles(facts, {_program(run) for run in runs})
    again = [
        line["id"]
        for run, lines in runs.items()
        for line in lines
        if not (line.get("unordered") and "member" not in line)
        and any(
            other != run
            and at + ACKNOWLEDGED_NS + facts.longest[other] + late <= line["t"]
            and _stays(troubles, at, line["t"], prompt.get("spare", 0))
            for other, at in acknowledged[line["id"]].items()
        )
    ]
    if again:
        text = f"{receiver} got {len(again)} messages again that an earlier run had consumed long before its end"
        verdict.add("repeated", f"{text}: {_some(again)}")


def _program(run: str) -> str:
    return run.rpartition(".")[0]


def _end(facts: HistoryFacts, run: str) -> float:
    """Return when a run ended (ns); its last line has the time unless a fault ended it. A run may not have ended."""
    program, begun = _program(run), facts.runs.get(run, ("", 0))[1]
    later = [at for other, (_, at) in facts.runs.items() if _program(other) == program and at > begun]
    if not later:
        return float("inf")
    faults = [mark for mark in facts.marks if mark["is"] == "fault" and mark.get("do") in ENDS]
    ends = [mark["t"] for mark in faults if mark["who"] == program and begun <= mark["t"] < min(later)]
    lines = [at for (one, _), at in facts.consumed.items() if one == run]
    return min(ends) if ends else max([*lines, *(line["t"] for line in facts.delivered[run])], default=begun)


Trouble = tuple[str, int, float]


def _stays(troubles: Iterable[Trouble], begin: int | float, end: int, spare: int) -> bool:
    """Return whether enough stores get what is acknowledged at `begin`, and have it at `end` (ns)."""
    weak = {who for who, struck, healed in troubles if struck < end and begin < healed}
    return ALL not in weak and len(weak) <= spare


def _troubles(facts: HistoryFacts, programs: Collection[str]) -> list[Trouble]:
    """Return who may not get an acknowledgement of these `programs`, or lose it, and when.

    The end of a client's program is no such trouble. Nor is what another receiver suffers. A store that lost records
    from its disk never counts again. Behind a router that fails, the stores of the other domain get nothing.
    """
    beyond = {store for program in programs for store in facts.beyond.get(program, ())}
    roles = {_program(run): role for run, (role, _) in facts.runs.items()}
    healed = {(mark["who"], mark["text"]): mark["t"] for mark in facts.marks if mark["is"] == "heal" and "text" in mark}
    troubles: list[Trouble] = []
    for mark in facts.marks:
        who, do = mark.get("who", ""), mark.get("do")
        role = roles.get(who)
        if mark["is"] != "fault" or (role and do in ENDS) or (role == "receiver" and who not in programs):
            continue
        lasts = do in LOSSES or (who, mark.get("text")) not in healed
        until = float("inf") if lasts else healed[who, mark["text"]] + RETURNED_NS
        if who in facts.routers:
            troubles += ((store, mark["t"], until + facts.routed_ns) for store in sorted(beyond))
        else:
            troubles.append((ALL if role or do == "blackout" else who, mark["t"], until))
    return troubles


def _divided(facts: HistoryFacts, verdict: Verdict, group: str) -> None:
    """Judge the rule `divided`: while no member fails, and the stores answer, each message is processed once."""
    programs = {_program(run) for run, lines in facts.delivered.items() if lines[0]["receiver"] == group}
    failures = [begin for _, begin, _ in _troubles(facts, programs)]
    failures += [
        mark["t"]
        for mark in facts.marks
        if mark["is"] == "fault" and mark["who"] in programs and mark.get("do") != "close"
    ]
    failed = min(failures, default=float("inf"))
    again = [name for name, times in facts.consumed_at[group].items() if any(at < failed for at in sorted(times)[1:])]
    if again:
        verdict.add("divided", f"{group} processed {len(again)} messages again, and no member failed: {_some(again)}")


def _blocked(facts: HistoryFacts, verdict: Verdict) -> None:
    """Judge the rule `blocked`: messages become stable in the second half of a fault that a quorum survives."""
    began: dict[str, Line] = {}
    for mark in facts.marks:
        if mark["is"] == "fault" and mark.get("survivable"):
            began[mark["who"]] = mark
        elif mark["is"] == "heal" and mark["who"] in began:
            start, end = began.pop(mark["who"])["t"], mark["t"]
            middle = (start + end) // 2
            if not any(line["is"] == "stable" and middle < line["t"] < end for line in facts.lines):
                verdict.add("blocked", f"nothing became stable while only the disk of {mark['who']} failed")
