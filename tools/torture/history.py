"""Play one plan: start the programs, apply the faults, heal them, and judge the history.

    python -m tools.torture.history PLACE [PLANT]    read PLACE/plan.json, write PLACE/verdict.json

The program runs as the first process of its own namespaces (network, mounts, processes), see `arguments`. Therefore no
process, mount, loop device or network device outlives it.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from stablecast.lab.whole.history_checker import Verdict, gather, judge, undelivered
from tests.support.processes import until
from tools.torture.commands import Commands
from tools.torture.disks import Disk
from tools.torture.hosts import HostNetwork
from tools.torture.plan import DISK_MEGABYTES, LATE, STORES, Plan, Step
from tools.torture.processes import Role

READY_SECONDS = 60.0
LIVENESS_SECONDS = 60.0
"""Time limit for settling after all faults are over. An idle machine needs some seconds."""
END_SECONDS = 20.0
NOTICE_SECONDS = 20.0
"""Time limit for a store to notice that its files are gone, which looks each two seconds, and for a forked child."""
LOOK_SECONDS = 0.3
"""Time between two looks at what receivers lack."""
SURVIVABLE = frozenset({"disks", "daemon", "removals", "inodes", "silences"})
"""Kinds of plans in which messages become stable while one store is gone."""
LATE_NS = 3_000_000_000
"""Time (ns) by which other work on the machine may delay an acknowledgement."""

UNDONE: Mapping[str, str] = {
    "stop": "continue", "cut": "join", "unplug": "plug", "mute": "unmute", "route": "unroute", "limit": "unlimit",
    "fill": "free", "fail": "repair", "power": "repair", "slow": "quick", "noise": "still",
    "lag": "still", "remove": "restored",
}  # fmt: skip
"""The step that ends each fault."""


def arguments(place: Path, plant: str = "") -> list[str]:
    """Return the command line that plays `place/plan.json` in namespaces of its own."""
    apart = "unshare --net --mount --propagation private --pid --fork --kill-child --mount-proc"
    return [*apart.split(), sys.executable, "-m", "tools.torture.history", str(place), plant]


class PlayedHistory:
    """One plan that is played: its hosts, disks and programs, and the marks and lines that they leave."""

    def __init__(self, plan: Plan, place: Path, plant: str) -> None:
        self._plan = plan
        self._place = place
        self._marks: list[dict[str, Any]] = []
        self._open: dict[tuple[str, str, str], Step] = {}  # the steps that undo the open faults
        self._excused: set[str] = set()
        self._due: set[str] = {*plan.sources, *plan.receivers, "relay"} - set(plan.later)
        self._files: dict[Path, int] = {}
        self._lines: list[dict[str, Any]] = []
        self.servers = ("daemon",) if plan.daemon else STORES
        self._due |= set(self.servers)
        self._network = HostNetwork(["relay", *self.servers, *plan.sources, *plan.receivers, LATE])
        self._disks = {
            store: Disk(place / "disks" / store, kind, DISK_MEGABYTES)
            for store, kind in zip(STORES, plan.disks, strict=True)
        }
        directories = {store: disk.directory for store, disk in self._disks.items()}
        self._commands = Commands(plan, self._network, directories, place, plant)
        runs = place / "runs"
        runs.mkdir()
        self.programs = {
            name: Role(name, self._network.namespace(name), runs)
            for name in ("relay", *self.servers, *plan.sources, *plan.receivers, LATE)
        }

    # Start of programs.

    def start(self, *names: str) -> None:
        """Start programs. Applications have begun, or ended, when this returns."""
        for name in names:
            self._launch(name)
        for name in set(names) - {"relay", *self.servers}:
            program = self.programs[name]
            until(partial(_begun, program), READY_SECONDS)

    def _launch(self, name: str) -> None:
        program = self.programs[name]
        if program.alive:
            return
        self._note_end(name)
        self._due.add(name)
        program.start(self._commands.of(program))
        if ("free", name, "") in self._open:
            self._excuse(name)

    # Faults.

    def do(self, step: Step) -> None:
        network, who = self._network, step.who
        program = self.programs.get(who)
        match step.do:
            case "start":
                self.start(who)
            case "kill":
                self.kill(who)
            case "stop" if program:
                program.signal(signal.SIGSTOP)
                self._silence("fault", who)
            case "continue" if program:
                program.signal(signal.SIGCONT)
                self._silence("heal", who)
            case "cut" | "join" | "unplug" | "plug" | "readdress":
                getattr(network, step.do)(who)
            case "mute" | "unmute":
                getattr(network, step.do)(who, step.other)
            case "route" | "unroute":
                getattr(network, step.do)(who, step.other, step.how)
            case "limit" if program:
                self._excuse(who)
                program.limit(step.how)
            case "unlimit" if program:
                program.unlimit()
            case "fork" if program:
                self._fork(program)
            case "noise":
                network.noise(who, int(step.how) / 100)
            case "lag":
                network.noise(who, 0.0, int(step.how) / 1000)
            case "still":
                network.still(who)
            case "slow" | "quick":
                self._commands.delay(who, step.how or "0")
            case "none":
                pass
            case _:
                self._on_disk(step)
        self._remember(step)
        self.mark("step", do=step.do, who=who)

    def _on_disk(self, step: Step) -> None:
        disk = self._disks[step.who]
        match step.do:
            case "fill" | "fail" | "power":
                self._excuse(step.who)
                self.mark("fault", who=step.who, survivable=self._plan.kind in SURVIVABLE)
                if self._plan.kind == "powercuts":
                    self.programs[step.who].freeze()
                if step.do == "fill":
                    disk.fill(step.how)
                else:
                    {"fail": disk.fail, "power": disk.lose_power}[step.do]()
            case "free":
                disk.free()
                self.mark("heal", who=step.who)
            case "repair":
                self.kill(step.who)
                disk.repair()
                self.mark("heal", who=step.who)
            case "remove":
                self._excuse(step.who)
                self.mark("fault", who=step.who, survivable=True)
                disk.remove(step.how)
            case "restored":
                if not until(partial(_ended, self.programs[step.who]), NOTICE_SECONDS):
                    self.mark("hang", text=f"{step.who} did not notice in {NOTICE_SECONDS:.0f} s that its files went")
                self.kill(step.who)
                disk.restored(step.how)
                self.mark("heal", who=step.who)
            case "copy":
                disk.copy()
            case "damage":
                self.kill(step.who)
                disk.damage(step.how, step.seed)

    def _fork(self, program: Role) -> None:
        """Let an application fork, and wait until its child has tried what it inherited."""

        def children() -> int:
            return sum(line["is"] == "forked" and line["run"] == program.run for line in self.lines())

        before = children()
        program.signal(signal.SIGUSR2)
        if not until(lambda: children() > before or not program.alive, NOTICE_SECONDS):
            self.mark("hang", text=f"a child of {program.run} waits since {NOTICE_SECONDS:.0f} s")

    def _silence(self, what: str, who: str) -> None:
        if self._plan.kind == "silences" and who in STORES:
            self.mark(what, who=who, survivable=True)

    def _remember(self, step: Step) -> None:
        undo = UNDONE.get(step.do)
        if undo is not None:
            self._open[undo, step.who, step.other] = attrs.evolve(step, do=undo)
        self._open.pop((step.do, step.who, step.other), None)

    def _excuse(self, who: str) -> None:
        """Permit a program without disk, descriptors or memory to end. A daemon with healthy stores may not end."""
        if who in self.programs:
            self._excused.add(self.programs[who].run)

    def kill(self, name: str) -> None:
        self._note_end(name)
        self._due.discard(name)
        self.programs[name].kill()

    def _note_end(self, name: str) -> None:
        """Mark a run that ended by itself."""
        program = self.programs[name]
        if name not in self._due or program.status is None or not program.runs:
            return
        self._due.discard(name)
        if program.run not in self._excused:
            self.mark("ended", who=name, text=f"{program.run} ended by itself with status {program.status}")
        else:
            self.mark("gone", who=name)

    def mark(self, what: str, **fields: object) -> None:
        self._marks.append({"t": time.monotonic_ns(), "is": what, "run": "history", **fields})

    # The phases of a history.

    def play(self) -> Verdict:
        self.mark("made")
        self.start("relay", *self.servers)
        for name in self.servers:
            if not until(partial(_ready, self.programs[name]), READY_SECONDS):
                self.mark("hang", text=f"{name} was not ready after {READY_SECONDS:.0f} s")
        self.start(*self._applications())
        self._registered()
        self.mark("begun")
        if self._plan.prompt:
            self.mark("prompt", late=LATE_NS)
        for owner, messages in self._plan.kept_by_owner().items():
            self.mark("limited", owner=owner, messages=messages)
        began = time.monotonic()
        for step in self._plan.steps:
            time.sleep(max(0.0, began + step.at - time.monotonic()))
            before = time.monotonic()
            self.do(step)
            began += time.monotonic() - before  # the next step comes as long after this one as planned
        self.heal()
        self.settle()
        self.mark("settled")
        self.leave()
        self.mark("left")
        return self.verdict()

    def _applications(self) -> list[str]:
        return [name for name in (*self._plan.receivers, *self._plan.sources) if name not in self._plan.later]

    def _registered(self) -> None:
        """Wait for the first stable message. Faults begin then."""
        until(lambda: any(line["is"] == "stable" for line in self.lines()), READY_SECONDS)

    def heal(self) -> None:
        """Undo the remaining faults, and start every program that does not run."""
        for undo in list(self._open.values()):
            self.do(undo)
        self.start("relay", *self.servers, *self._applications())
        self.mark("healed")

    def settle(self) -> None:
        """Let all sources end, and wait until every receiver, including a late one, got every stable message."""
        ends = time.monotonic() + LIVENESS_SECONDS
        for name in (*self._plan.sources, *self._plan.receivers):
            self.programs[name].signal(signal.SIGUSR1)
        until(self._over, ends - time.monotonic(), 0.1)
        if self._loud():
            text = f"after {LIVENESS_SECONDS:.0f} s some sent messages were not stable: {self._loud()}"
            self.mark("hang", text=text)
        self.mark("silent")
        if self._plan.late:
            self.start(LATE)
        receivers = self._all_receivers()
        seconds = max(LIVENESS_SECONDS / 2, ends - time.monotonic())
        if not until(lambda: not self._missing(receivers), seconds, LOOK_SECONDS):
            text = f"after {LIVENESS_SECONDS:.0f} s stable messages were not delivered: {self._missing(receivers)}"
            self.mark("hang", text=text)

    def leave(self) -> None:
        """End all programs with SIGTERM."""
        for name in self.programs:
            self._note_end(name)
        for group in ((LATE, *self._plan.receivers, *self._plan.sources), (*self.servers, "relay")):
            programs = [self.programs[name] for name in group]
            self._due -= set(group)
            for program in programs:
                program.signal(signal.SIGCONT)
                program.signal(signal.SIGTERM)
            for program in programs:
                if not program.end(END_SECONDS):
                    self.mark("hang", text=f"{program.run} did not end within {END_SECONDS:.0f} s of SIGTERM")

    def lines(self) -> list[dict[str, Any]]:
        """Return all lines so far. Each call reads only the new part of each file."""
        for path in (self._place / "runs").glob("*.jsonl"):
            at = self._files.get(path, 0)
            with path.open("rb") as file:
                file.seek(at)
                whole, _, _ = file.read().rpartition(b"\n")
            if whole:
                self._files[path] = at + len(whole) + 1
                self._lines += [json.loads(line) for line in whole.splitlines()]
        return self._lines

    def _loud(self) -> list[str]:
        """Return the streams that are not silent yet, and the topics of owners without a silent stream."""
        last: dict[str, dict[str, Any]] = {}
        for line in self.lines():
            if line["is"] in {"registered", "refused", "quiet", "closed", "forbidden"}:
                last[line["stream"]] = line
        running = {program.run for program in self.programs.values() if program.alive}
        states = [line for line in last.values() if line["run"] in running]
        quiet = {(line["owner"], line["topic"]) for line in states if line["is"] == "quiet"}
        loud = [line["stream"] for line in states if line["is"] == "registered"]
        due = {
            (owner, topic) for job in self._plan.sources.values() for topic in job["topics"] for owner in _owners(job)
        }
        return loud + [f"{owner} on {topic}" for owner, topic in sorted(due - quiet)]

    def _over(self) -> bool:
        """Return whether all sources are silent, or a program ended that should run."""
        return not self._loud() or any(self.programs[name].status is not None for name in self._due)

    def _all_receivers(self) -> list[str]:
        """Return the owners of all receivers that must get everything."""
        owners = [*dict.fromkeys(job["owner"] for job in self._plan.receivers.values())]
        return [*owners, LATE] if self._plan.late else owners

    def _missing(self, receivers: list[str]) -> dict[str, int]:
        """Return how many stable messages each receiver neither got nor reported as lost to a limit, by the judge."""
        facts = gather([*self._marks, *self.lines()])
        found = {name: undelivered(facts, name) for name in receivers}
        counts = {name: len(missing) + sum(map(len, unseen.values())) for name, (missing, unseen) in found.items()}
        return {name: count for name, count in counts.items() if count}

    def verdict(self) -> Verdict:
        runs = self._place / "runs"
        errors = {path.stem: path.read_text(encoding="utf-8", errors="replace") for path in runs.glob("*.err")}
        errors = {run: text for run, text in errors.items() if run not in self._excused or "MemoryError" not in text}
        (self._place / "marks.jsonl").write_text("".join(json.dumps(m) + "\n" for m in self._marks), encoding="utf-8")
        return judge([*self.lines(), *self._marks], errors, self._all_receivers())


def _owners(job: Mapping[str, Any]) -> list[str]:
    """Return the names under which a source application owns its numbers: one for each of its sessions."""
    return (
        [f"{job['owner']}/{handle}" for handle in range(len(job["sessions"]))] if "sessions" in job else [job["owner"]]
    )


def _begun(program: Role) -> bool:
    """Return whether an application has begun to write, or ended."""
    return program.history().exists() or not program.alive


def _ended(program: Role) -> bool:
    return not program.alive


def _ready(program: Role) -> bool:
    """Return whether a server has printed that it is ready, or ended."""
    return "\n" in program.output() or not program.alive


def main() -> None:
    place = Path(sys.argv[1])
    os.umask(0o022)
    plan = Plan.read((place / "plan.json").read_text(encoding="utf-8"))
    began = time.monotonic()
    verdict = PlayedHistory(plan, place, sys.argv[2] if len(sys.argv) > 2 else "").play()
    document = {**vars(verdict), "seconds": time.monotonic() - began}
    (place / "verdict.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
