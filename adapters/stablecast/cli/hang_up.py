"""Answer a SIGHUP to a store daemon whose log is a file: reopen the log, and read the configuration again.

The rolling of the log and the limits of the stores follow the file at once. The log names every other change, because
it needs a restart: clients have agreed with the stores on those values.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from stablecast.cli.daemon_process import CODE, read_again
from stablecast.config.plan import Plan, StorePlan
from stablecast.config.plan_assembly import load
from stablecast.store.hosts import Host
from stablecast.store.log_lines import Log, Severity


@attrs.define
class HangUp:
    """The daemon that a signal reaches: its configuration file, the plan that it follows, its log and its stores."""

    path: Path
    profile: str
    plan: Plan
    log: Log
    hosts: Sequence[Host]

    def __call__(self) -> None:
        """Reopen the log, and follow the file as far as that is possible without a restart."""
        plan = read_again(self.path, lambda: load(self.path, self.profile), self.log, self.plan.daemon.log)
        if plan is None:
            return
        for what in changes(self.plan, plan):
            self.log.write(Severity.WARNING, "", CODE, f"{self.path}: {what} changed; restart the daemon to follow it")
        limits = {store.name: store.limits for store in plan.stores}
        for host in self.hosts:
            name = host.store.settings.name
            if name in limits:
                host.limit(limits[name])


def changes(before: Plan, after: Plan) -> Iterator[str]:
    """Yield the parts of a configuration that differ, and that only a restart can follow."""
    rolling = {"frequency": before.daemon.log.frequency, "size": before.daemon.log.size}
    for field in attrs.fields(type(before.daemon)):
        old, new = getattr(before.daemon, field.name), getattr(after.daemon, field.name)
        if (attrs.evolve(new, **rolling) if field.name == "log" else new) != old:
            yield field.name
    old_stores, new_stores = ({store.name: store for store in plan.stores} for plan in (before, after))
    for name in sorted({*old_stores, *new_stores}):
        if not _equal(old_stores.get(name), new_stores.get(name)):
            yield f'store "{name}"'


def _equal(before: StorePlan | None, after: StorePlan | None) -> bool:
    """Return whether two plans of a store differ in nothing but limits, which it follows at once."""
    if before is None or after is None:
        return False
    return attrs.evolve(after, limits=before.limits) == before
