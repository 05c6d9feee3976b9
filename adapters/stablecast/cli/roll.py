"""Replace all stores of a fleet in turn, for `stablecast store roll`."""

import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs

from stablecast.config.option_names import SAFE
from stablecast.config.plan_assembly import load
from stablecast.ops.fleet.roll import Roll, obstacles
from stablecast.ops.fleet.survey import survey
from stablecast.ops.operations.monitor_client import token_of
from stablecast.ops.operations.target import OperationError, base
from stablecast.runtime import address
from stablecast.text.console import note, say
from stablecast.text.exit_status import FAILED


@attrs.frozen
class RollJob:
    """Hold the arguments of `stablecast store roll`.

    Attributes:
        monitors: The monitors of the daemons, in the order of their replacement.
        configs: Configurations of daemons, whose monitors follow.
        command: The shell command that replaces the stores of one daemon; empty: a person does it.
        patience: Seconds to wait for the fleet before each step.
        token: File with the token of the monitors.
        check: Only report whether a store may go now.
    """

    monitors: Sequence[str]
    configs: Sequence[Path]
    command: str
    patience: float
    token: Path | None
    check: bool


def run(job: RollJob) -> int:
    """Replace all stores in turn, or check whether one may go; return the exit status.

    Raises:
        OperationError: The fleet is not whole, or a replacement failed.
        ConfigFileError: A configuration cannot be used.
    """
    monitors = [*map(base, job.monitors), *(_monitor_of(path) for path in job.configs)]
    if len(monitors) < 2:
        raise OperationError("name the monitors of all daemons, or their configurations: others keep the messages")
    look = partial(survey, monitors, token_of(job.token))
    if job.check:
        found = list(obstacles(look()))
        for text in found or ["a store may be replaced now"]:
            say(text)
        return FAILED if found else 0
    Roll(look, partial(_replace, job.command), say, job.patience).run(monitors)
    say("all daemons were replaced, and every source has all of its stores")
    return 0


def _replace(command: str, monitor: str) -> None:
    """Run the command for one daemon, or ask a person. Raises OperationError."""
    if not command:
        note(f"Replace the stores of {monitor} now. Press Enter when its daemon runs again.")
        try:
            input()
        except EOFError:
            text = f"the input ended before {monitor} was replaced: run the command in a terminal, or with --run"
            raise OperationError(text) from None
        return
    environment = {**os.environ, "STABLECAST_MONITOR": monitor}
    status = subprocess.run(command, shell=True, env=environment, check=False).returncode  # noqa: S602 - the operator's
    if status:
        raise OperationError(f"the command for {monitor} ended with status {status}; no other store was touched")


def _monitor_of(path: Path) -> str:
    """Return the monitor of a daemon's configuration. Raises OperationError, ConfigFileError."""
    monitor = load(path, SAFE).daemon.monitor
    if monitor is None:
        raise OperationError(f"{path} has no web-monitor: a roll has to see what the stores of the daemon lack")
    return f"http://{address.join(monitor.host, monitor.port)}"
