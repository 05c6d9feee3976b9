"""Show several stores as one, for `stablecast fleet`."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.live import Live

from stablecast.ops.fleet.copies import FleetSource, joined
from stablecast.ops.fleet.findings import FleetFinding, findings, worst
from stablecast.ops.fleet.screen import screen
from stablecast.ops.fleet.server import FleetServer
from stablecast.ops.fleet.survey import Survey, survey
from stablecast.ops.monitor.health import Urgency
from stablecast.ops.operations.monitor_client import token_of
from stablecast.ops.operations.target import OperationError, Remote, place
from stablecast.text import refusal
from stablecast.text.console import printer, say, show
from stablecast.text.exit_status import FAILED

POLL_SECONDS = 2.0
"""Time between two surveys of a screen that is watched."""


def run(monitors: Sequence[str], rows: int, watch: bool, token_file: Path | None, as_json: bool) -> int:
    """Show the fleet once, or until interrupted.

    Return 1 if a finding is critical, else 0. Raises OperationError if an address is wrong, or no monitor answers.
    """
    bases = [_base(text) for text in monitors]
    token = token_of(token_file)
    if watch:
        with Live(screen(*_looked(bases, token), rows), screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(POLL_SECONDS)
                live.update(screen(*_looked(bases, token), rows), refresh=True)
    surveyed, sources, found = _looked(bases, token)
    if as_json:
        say(
            {
                "level": worst(found).name,
                "findings": [one.as_json() for one in found],
                "stores": [
                    {"name": one.name, "monitor": one.monitor, "level": one.record["level"]} for one in surveyed.stores
                ],
                "sources": [source.as_json() for source in sources],
            }
        )
    else:
        printer().print(screen(surveyed, sources, found, rows))
    return FAILED if worst(found) is Urgency.CRITICAL else 0


def serve(monitors: Sequence[str], place_of_page: str, token_file: Path | None, as_json: bool) -> int:
    """Serve the page until interrupted, and return 0. Raises OperationError if an address is wrong or in use."""
    host, _, port = place_of_page.rpartition(":")
    bases, token = [_base(text) for text in monitors], token_of(token_file)
    try:
        server = FleetServer.of(host or "127.0.0.1", int(port), bases, token)
    except (ValueError, OverflowError):
        raise OperationError(f"'{place_of_page}' is no place for a page: give a port, or ip:port") from None
    except OSError as error:
        raise OperationError(
            f"the page cannot listen at {place_of_page}: {refusal(error)}; name another port"
        ) from None
    with server:
        address = f"http://{server.server_address[0]!s}:{server.server_address[1]}/"
        show({"page": address}, [f"the fleet is at {address}"], as_json)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _looked(bases: Sequence[str], token: str) -> tuple[Survey, list[FleetSource], list[FleetFinding]]:
    surveyed = survey(bases, token)
    if not surveyed.stores:
        raise OperationError("; ".join(surveyed.silent.values()) or "the monitors that answered have no store")
    sources = joined(surveyed)
    return surveyed, sources, findings(surveyed, sources)


def _base(text: str) -> str:
    at = place(text if "://" in text else f"http://{text}")
    assert isinstance(at, Remote)
    return at.base
