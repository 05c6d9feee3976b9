"""The commands that start the programs of a history: the shipped commands, and applications with their jobs."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from tools.torture import applications
from tools.torture.hosts import HostNetwork
from tools.torture.plan import ACTIVITY_MS, LATE, STORES, Plan
from tools.torture.processes import Role

PORT = 14567
RELAY_PORT = 15380
LATE_SESSION = 99
CLIENT = "stablecast.cli.main"
APPLICATIONS = "tools.torture.applications"
TIMEOUTS = {"source-activity-timeout": ACTIVITY_MS, "receiver-activity-timeout": ACTIVITY_MS}
"""The options of stores that differ from the defaults."""

Command = list[str] | Callable[[], None]


@attrs.frozen
class Commands:
    """The commands of one plan.

    `directories` belong to the stores. Files are written to `place`. Every process contains the `plant`.
    """

    plan: Plan
    network: HostNetwork
    directories: Mapping[str, Path]
    place: Path
    plant: str

    def delay(self, store: str, ms: str) -> None:
        """Lengthen each sync of a forked store by `ms`."""
        self._delay_of(store).write_text(ms, encoding="ascii")

    def _delay_of(self, store: str) -> Path:
        return self.place / f"{store}.delay"

    def of(self, program: Role) -> Command:
        """Return the command line, or the function, that starts the next run of a program."""
        name = program.name
        new = [] if program.runs else ["--new"]  # a store is new at its first start only
        if name == "relay" and self.plan.service:
            host = self.network.address(name)
            return self._shipped(name, "srs", "--interface", host, "--port", str(RELAY_PORT), "--json")
        if name == "relay":
            return self._shipped(name, "lbmrd", "--listen", self._relay(), "--json")
        if name == "daemon":
            return self._python(CLIENT, "store", str(self._configuration()), "--json", *new)
        if name in STORES:
            given = [f"{option}={value}" for option, value in TIMEOUTS.items()] + [*self.plan.store_options]
            timeouts = [word for option in given for word in ("-o", option)]
            where = [str(self.directories[name]), "--listen", f"{self.network.address(name)}:{PORT}"]
            return self._shipped(name, "store", *where, "--json", *timeouts, *new)
        role, job = "source" if name in self.plan.sources else "receiver", self._job(program)
        return self._python(APPLICATIONS, role, json.dumps(job)) if self.plant else partial(applications.run, role, job)

    def _job(self, program: Role) -> dict[str, Any]:
        plan, run = self.plan, program.runs + 1
        topics = sorted({topic for job in plan.sources.values() for topic in job["topics"]})
        options = [job.get("options", {}) for job in plan.receivers.values()]
        late = {"session": LATE_SESSION, "owner": LATE, "topics": topics, "mode": "plain", "options": options[-1]}
        job = {**plan.sources, **plan.receivers, LATE: late}[program.name]
        return {
            **job,
            "history": str(program.history(run)),
            "run": f"{program.name}.{run}",
            "resolution": {"resolver_service" if plan.service else "resolver": [self._relay()]},
            "interface": "" if job.get("roams") else self.network.address(program.name),
            "stores": self._addresses(),
        }

    def _shipped(self, name: str, *words: str) -> Command:
        if not self.plan.forked:
            return self._python(CLIENT, *words)
        from tools.torture.forked_commands import run  # noqa: PLC0415 - only these plans need the command line here

        return partial(run, words, self._delay_of(name))

    def _python(self, module: str, *rest: str) -> list[str]:
        if not self.plant:
            return [sys.executable, "-m", module, *rest]
        return [sys.executable, "-c", "from tools.torture.plants import main; main()", self.plant, module, *rest]

    def _relay(self) -> str:
        return f"{self.network.address('relay')}:{RELAY_PORT}"

    def _addresses(self) -> list[str]:
        if self.plan.daemon:
            return [f"{self.network.address('daemon')}:{PORT + index}" for index in range(len(STORES))]
        return [f"{self.network.address(store)}:{PORT}" for store in STORES]

    def _configuration(self) -> Path:
        """Write the file of a daemon with all stores."""
        interface = self.network.address("daemon")
        topic = ", ".join(f"{option} = {value}" for option, value in TIMEOUTS.items())
        text = [f'[daemon]\nlog = {{ path = "{self.place}/daemon.log", frequency = "disable" }}\n']
        for index, store in enumerate(STORES):
            directory = self.directories[store]
            for part in ("cache", "state"):
                (directory / part).mkdir(exist_ok=True)
            text.append(
                f'[[store]]\nname = "{store}"\nport = {PORT + index}\ninterface = "{interface}"\n'
                f'options = {{ disk-cache-directory = "{directory}/cache", '
                f'disk-state-directory = "{directory}/state" }}\n'
                f'[[store.topic]]\npattern = "."\ntype = "PCRE"\noptions = {{ repository-type = "disk", {topic} }}\n'
            )
        path = self.place / "daemon.toml"
        path.write_text("\n".join(text), encoding="utf-8")
        return path
