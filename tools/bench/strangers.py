"""Live traffic of known peers while a stranger floods each port: rates, newcomers, memory, before, during and after.

    python -m tools.bench.strangers [KIND ...] [--seconds 60] [--pace 200] [--json FILE]

A store with a monitor, two relays, a service, a router between two domains, a source and two receivers run as shipped,
each in a process. The source takes turns: a steady rate, and as many as its credit allows. The stranger is a process at
an address of its own. At first it has a pace, so that not the processor of the machine is measured. For the last fifth
it has none and the lowest priority. Visitors come anew during all of it. At the end nobody is restarted: all must be as
before. `joiners` and others that TLS keeps out run without it; `hellos` runs with it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from tests.support.network import LOCAL, unused_port
from tests.support.program import PROGRAM
from tests.support.tree import PYTHON_PATH, ROOT
from tools.bench import processes
from tools.bench.floods import KINDS, NEED_TLS
from tools.bench.known_peers import TOPIC

STEADY: Final = 1_000
"""Messages a second of the steady turns."""

TURN_SECONDS: Final = 4.0
REST_SECONDS: Final = 35.0
"""Rest after a flood: silent connections may stay for 30 s."""

START_SECONDS: Final = 30.0
LIVE_SHARE: Final = 0.5
"""The share of its rate that live traffic keeps, at least."""

LISTENING: Final = {"tcp": "0A", "udp": "07"}


@attrs.define
class Child:
    """A running program. Its standard error goes to a file, because nobody reads it."""

    name: str
    process: "subprocess.Popen[str]"
    said: Path

    def ask(self, command: object) -> Any:
        """Send a line, and return the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with {self.process.wait()}:\n{self.said.read_text()[-2000:]}")
        return json.loads(line)

    def ports(self, kind: str) -> list[str]:
        """Return the addresses at which the program listens: `tcp` or `udp`."""
        own = set()
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                own.add(str(link.readlink()))
            except FileNotFoundError:  # It was closed since.
                continue
        found = []
        for line in Path(f"/proc/net/{kind}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING[kind] and f"socket:[{fields[9]}]" in own:
                found.append(f"{LOCAL}:{int(fields[1].rpartition(':')[2], 16)}")
        return sorted(found)

    def size(self) -> dict[str, float]:
        """Return the resident MiB, the descriptors, and the processor seconds."""
        pid = self.process.pid
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        return {
            "mib": processes.resident(pid) / 2**20, "descriptors": descriptors, "cpu_s": processes.cpu(pid),
        }  # fmt: skip


@contextmanager
def child(name: str, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> Iterator[Child]:
    said = directory / f"{name}.err"
    with said.open("w") as file, subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH, **environment},
    ) as process:  # fmt: skip
        try:
            yield Child(name, process, said)
        finally:
            process.kill()


@attrs.define
class World:
    """The known peers, and what the stranger knows of them."""

    directory: Path
    environment: Mapping[str, str]
    stack: ExitStack
    children: dict[str, Child] = attrs.field(factory=dict)
    source: Mapping[str, Any] = attrs.field(factory=dict)
    monitors: list[str] = attrs.field(factory=list)
    phase: int = 0

    def start(self, name: str, *command: str) -> Child:
        made = self.children[name] = self.stack.enter_context(child(name, command, self.directory, self.environment))
        return made

    def command(self, name: str, *arguments: str) -> None:
        """Start a command of the product, and wait until it serves."""
        self.start(name, *PROGRAM, *arguments, "--json").answer()

    def peer(self, name: str, role: str, **places: str) -> Child:
        return self.start(name, sys.executable, "-m", "tools.bench.known_peers", role, json.dumps(places))

    def build(self) -> None:
        """Start everything."""
        relays = [f"{LOCAL}:{unused_port()}" for _ in range(2)]
        store, service, *monitors = (f"{LOCAL}:{unused_port()}" for _ in range(4))
        self._write(relays, store, monitors)
        for number, relay in enumerate(relays, 1):
            self.command(f"relay-{number}", "lbmrd", "--listen", relay)
        self.command("service", "srs", "--interface", LOCAL, "--port", service.rpartition(":")[2])
        self.command("store", "store", str(self.directory / "store.toml"), "--new")
        self.command("router", "router", str(self.directory / "router.toml"))
        near, far = (self.peer(f"receiver-{at}", "receiver", relay=relays[at], session=str(5 + at)) for at in range(2))
        source = self.peer("source", "source", relay=relays[0], store=store)
        visitor = self.peer("visitor", "visitor", relay=relays[0], store=store, service=service)
        near.answer(), far.answer(), visitor.answer()
        self.source = source.answer()
        while self.turn(STEADY)["missing"]:  # The far receiver finds the source through the router.
            pass

    def _write(self, relays: Sequence[str], store: str, monitors: list[str]) -> None:
        for folder in ("cache", "state"):
            (self.directory / folder).mkdir()
        here, host, port = self.directory, *store.rsplit(":", 1)
        (here / "store.toml").write_text(
            f'[daemon]\nlog = "{here}/store.log"\n'
            f'web-monitor = {{ address = "{monitors[0]}", permission = "read-only" }}\n'
            f'[[store]]\nname = "s"\nport = {port}\ninterface = "{host}"\n'
            f'options = {{ disk-cache-directory = "{here}/cache", disk-state-directory = "{here}/state" }}\n'
            f'context = {{ resolver_unicast_daemon = "{relays[0]}" }}\n'
            '[[store.topic]]\npattern = "."\ntype = "PCRE"\noptions = { repository-type = "disk" }\n'
        )
        (here / "router.toml").write_text(
            f'[daemon]\nname = "edge"\nlog = {{ path = "{here}/router.log", type = "file" }}\n'
            f'web-monitor = "{monitors[1]}"\n'
            + "".join(
                f'[[portals.endpoint]]\nname = "portal-{number}"\ndomain-id = {number}\n'
                f'context = {{ resolver_unicast_daemon = "{relay}", request_tcp_interface = "{LOCAL}" }}\n'
                for number, relay in enumerate(relays, 1)
            )
        )
        self.monitors = monitors

    def targets(self) -> str:
        """Return what the stranger is told, as JSON."""
        tcp = {name: one.ports("tcp") for name, one in self.children.items()}
        tcp["monitor"] = self.monitors
        for name in ("store", "router"):
            tcp[name] = [place for place in tcp[name] if place not in self.monitors]
        udp = {"relay": self.children["relay-1"].ports("udp") + self.children["relay-2"].ports("udp")}
        udp["contexts"] = [
            p for name in ("receiver-0", "receiver-1", "source", "store") for p in self.children[name].ports("udp")
        ]
        tcp = {name: places for name, places in tcp.items() if places and name != "visitor"}
        return json.dumps(
            {"tcp": tcp, "udp": udp, "topic": TOPIC, "life": self.source["life"], "reg_id": self.source["reg_id"]}
        )

    def turn(self, per_s: int) -> dict[str, float]:
        """Let the source send for a turn; return the rates, and the time to the near receiver."""
        self.phase += 1
        command = {"phase": self.phase, "seconds": TURN_SECONDS, "per_s": per_s}
        found = self.children["source"].ask(command)
        sent = {"phase": self.phase, "sent": found["sent"]}
        near, far = (self.children[f"receiver-{at}"].ask(sent) for at in range(2))
        rate = found["sent"] / found["seconds"] if found["stable"] else 0.0
        return {
            "rate": rate, "p99_ms": near["p99_ms"],
            "missing": 2 * found["sent"] - near["count"] - far["count"],
        }  # fmt: skip

    def sizes(self) -> dict[str, dict[str, float]]:
        return {
            name: one.size() | {"log_lines": self._lines(name)}
            for name, one in self.children.items() if name != "visitor"
        }  # fmt: skip

    def _lines(self, name: str) -> int:
        files = [self.children[name].said, self.directory / f"{name}.log"]
        return sum(file.read_bytes().count(b"\n") for file in files if file.exists())

    def asked(self) -> float | str:
        """Return how long the store's monitor takes for its figures, in seconds."""
        began = time.monotonic()
        try:
            with urllib.request.urlopen(f"http://{self.monitors[0]}/metrics", timeout=START_SECONDS) as answer:
                answer.read()
        except OSError as error:
            return f"{type(error).__name__}: {error}"
        return time.monotonic() - began

    def visits(self) -> dict[str, float | str]:
        """Return how long newcomers and the monitor take. Live traffic goes on at the steady rate meanwhile."""
        visitor = self.children["visitor"]
        assert visitor.process.stdin is not None
        visitor.process.stdin.write("{}\n")
        visitor.process.stdin.flush()
        self.turn(STEADY)
        found: dict[str, float | str] = visitor.answer()
        return {**found, "monitor": self.asked()}


def span(world: World, turns: int, stranger: Child | None = None, pace: float = 0.0) -> dict[str, Any]:
    """Take turns; return the median of the rates, and the worst of the rest.

    The stranger pauses for a second full turn, so that other load of the machine counts for both.
    """
    steady, full, visits, alone = [], [], [], []
    for _ in range(turns):
        if stranger is not None:
            stranger.ask(pace)
        visits.append(world.visits())
        steady.append(world.turn(STEADY))
        full.append(world.turn(0))
        if stranger is not None:
            stranger.ask(None)
            alone.append(full[-1]["rate"] / max(1.0, world.turn(0)["rate"]))
    return {
        "beside": _median(alone) if alone else 1.0,
        "steady": _median([one["rate"] for one in steady]),
        "full": _median([one["rate"] for one in full]),
        "p99_ms": _median([one["p99_ms"] for one in steady]),
        "missing": sum(one["missing"] for one in steady + full),
        "visits": {name: _worst([one[name] for one in visits]) for name in visits[0]},
    }


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _worst(values: Sequence[float | str]) -> float | str:
    failed = [one for one in values if isinstance(one, str)]
    return failed[0] if failed else max(one for one in values if not isinstance(one, str))


def flood(kind: str, seconds: float, pace: float, tls: Path | None) -> dict[str, Any]:
    """Measure before, during and after the flood of a kind."""
    turn = 4 * TURN_SECONDS
    environment = {"STABLECAST_TLS": str(tls)} if kind in NEED_TLS else {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        world = World(Path(folder), environment, stack)
        world.build()
        found: dict[str, Any] = {"kind": kind, "before": span(world, 2), "sizes": {"before": world.sizes()}}
        command = [sys.executable, "-m", "tools.bench.floods", kind, world.targets()]
        with child("stranger", command, world.directory, environment) as stranger:
            found["paced"] = span(world, max(1, round(seconds * 0.8 / turn)), stranger, pace)
            counted = stranger.ask(None)
            found["unpaced"] = span(world, max(1, round(seconds * 0.2 / turn)), stranger)
            found["sizes"]["during"] = world.sizes()
            assert stranger.process.stdin is not None
            stranger.process.stdin.close()
            found["attempts"] = {"paced": counted, "all": stranger.answer()}
        time.sleep(REST_SECONDS)
        found["rested"] = span(world, 1)
        found["sizes"]["rested"] = world.sizes()
        found["said"] = {name: _last(one.said) for name, one in world.children.items()}
        found["log"] = _last(world.directory / "store.log"), _last(world.directory / "router.log")
        return found


def _last(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines()[-4:] if path.exists() else []


def show(found: Mapping[str, Any]) -> str:
    """Return a few lines about a flood."""
    lines = [f"{found['kind']}: {found['attempts']['paced']} paced, {found['attempts']['all']} in all"]
    before, usual = found["before"], (found["before"]["full"] + found["rested"]["full"]) / 2
    for when in ("before", "paced", "unpaced", "rested"):
        one = found[when]
        visits = ", ".join(f"{n} {v if isinstance(v, str) else f'{v:.2f}'}" for n, v in one["visits"].items())
        lines.append(
            f"  {when}: steady {one['steady'] / before['steady']:.2f}, full {one['full']:.0f}/s "
            f"({one['full'] / usual:.2f}; beside a pause {one['beside']:.2f}), p99 {one['p99_ms']:.1f} ms, "
            f"missing {one['missing']}; newcomers, s: {visits}"
        )
    sizes = found["sizes"]
    for name in sizes["before"]:
        rows = [sizes[when][name] for when in ("before", "during", "rested")]
        mib, descriptors, told = (
            "/".join(f"{row[figure]:.0f}" for row in rows) for figure in ("mib", "descriptors", "log_lines")
        )
        cpu = rows[1]["cpu_s"] - rows[0]["cpu_s"]
        lines.append(f"  {name}: MiB {mib}, descriptors {descriptors}, log lines {told}, CPU s {cpu:.1f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", help=f"default: all of {', '.join(KINDS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each flood")
    parser.add_argument("--pace", type=float, default=200.0, help="attempts a second")
    parser.add_argument("--tls", type=Path, help="a directory of certificates, for the kinds that need it")
    parser.add_argument("--json", type=Path, help="a file for all results")
    asked = parser.parse_args(arguments)
    if wrong := {*asked.kinds} - {*KINDS}:
        parser.error(f"there is no kind {wrong.pop()!r}: kinds are {', '.join(KINDS)}")
    results, slow = [], 0
    for kind in asked.kinds or KINDS:
        if kind in NEED_TLS and asked.tls is None:
            print(f"{kind}: left out, because it needs --tls", flush=True)
            continue
        found = flood(kind, asked.seconds, asked.pace, asked.tls)
        results.append(found)
        slow += min(found["paced"]["beside"], found["paced"]["steady"] / found["before"]["steady"]) < LIVE_SHARE
        print(show(found), flush=True)
        if asked.json is not None:
            asked.json.write_text(json.dumps(results, indent=1))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
