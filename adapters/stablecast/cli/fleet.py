"""Show several stores as one, for `stablecast fleet`."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from rich.live import Live

from stablecast.ops.fleet.findings import FleetLook
from stablecast.ops.fleet.screen import screen
from stablecast.ops.fleet.site import FleetSite
from stablecast.ops.fleet.survey import survey
from stablecast.ops.monitor.health import Urgency
from stablecast.ops.monitor.server import serving
from stablecast.ops.monitor.settings import MonitorSettings
from stablecast.ops.operations.monitor_client import token_of
from stablecast.ops.operations.target import OperationError, base
from stablecast.runtime import address, machine, ports
from stablecast.runtime.event_loop import run_loop
from stablecast.runtime.interfaces import InterfaceError, address_of
from stablecast.text.console import printer, say, show
from stablecast.text.exit_status import FAILED

POLL_SECONDS = 2.0
"""Time between two surveys of a screen that is watched."""


def run(monitors: Sequence[str], rows: int, watch: bool, token_file: Path | None, as_json: bool) -> int:
    """Show the fleet once, or until interrupted.

    Return 1 if a finding is critical, else 0. Raises OperationError if an address is wrong, or no monitor answers.
    """
    bases = [base(text) for text in monitors]
    token = token_of(token_file)
    if watch:
        with Live(screen(_looked(bases, token), rows), screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(POLL_SECONDS)
                live.update(screen(_looked(bases, token), rows), refresh=True)
    look = _looked(bases, token)
    if as_json:
        say(look.as_json())
    else:
        printer().print(screen(look, rows))
    return FAILED if look.level is Urgency.CRITICAL else 0


def serve(monitors: Sequence[str], place_of_page: str, token_file: Path | None, as_json: bool) -> int:
    """Serve the page until interrupted, and return 0. Raises OperationError if an address is wrong or in use."""
    host, _, port = place_of_page.rpartition(":")
    bases, token = [base(text) for text in monitors], token_of(token_file)
    try:
        settings = MonitorSettings(address_of(host or "127.0.0.1"), int(port), token=token)
        listening = ports.listen(settings.host, settings.port, "the page")
    except (ValueError, OverflowError, InterfaceError):
        raise OperationError(f"'{place_of_page}' is no place for a page: give a port, or ip:port") from None
    shown = f"http://{address.join(settings.host, listening.getsockname()[1])}/"
    with suppress(KeyboardInterrupt):
        run_loop(_serve(FleetSite(settings, partial(survey, bases, token)), listening, shown, as_json))
    return 0


async def _serve(site: FleetSite, listening: machine.Socket, shown: str, as_json: bool) -> None:
    async with serving(site.application(), listening):
        show({"page": shown}, [f"the fleet is at {shown}"], as_json)
        await asyncio.Event().wait()


def _looked(bases: Sequence[str], token: str) -> FleetLook:
    surveyed = survey(bases, token)
    if not surveyed.stores and not surveyed.routers:
        raise OperationError("; ".join(surveyed.silent.values()) or "the monitors that answered have no store")
    return FleetLook.of(surveyed)
