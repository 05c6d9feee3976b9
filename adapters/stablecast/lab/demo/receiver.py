"""Run the demo's receiver: record every message, then acknowledge it.

Delivery is at least once: an unacknowledged message comes again after a crash. Like any application with its own state,
the process looks up in its own file whether it has the message (P-427).
The argument of the process is a JSON object of its settings.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from stablecast.client import Context, Message
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.events import Event, UnrecoverableLoss
from stablecast.lab.demo.source import SESSION_ID, payload
from stablecast.runtime.event_loop import run_loop, until_interrupted
from stablecast.text.console import say
from stablecast.text.exit_status import guarded

REPORT_SECONDS = 0.05


class WrongMessageError(StablecastError):
    """Report a message whose payload does not match its number."""


class MessageLedger:
    """Record received messages in a file that survives the process."""

    def __init__(self, path: Path) -> None:
        self._again = path.with_suffix(".again").open("ab", buffering=0)
        self.numbers = {int(line) for line in path.read_bytes().splitlines()} if path.exists() else set[int]()
        self._file = path.open("ab", buffering=0)

    def write(self, message: Message) -> None:
        """Record a message in the file, once."""
        number = int(message.payload.rpartition(b" ")[2])
        if message.payload != payload(number) or message.sequence_number != number:
            raise WrongMessageError(f"message {message.sequence_number} has payload {message.payload!r}")
        if number in self.numbers:
            self._again.write(b"%d\n" % number)
            return
        self._file.write(b"%d\n" % number)
        self.numbers.add(number)

    def close(self) -> None:
        self._file.close()
        self._again.close()


async def _main(settings: dict[str, Any]) -> int:
    ledger = MessageLedger(Path(settings["ledger"]))
    reported = 0.0
    async with Context(resolver=settings["resolver"], session_id=SESSION_ID) as context:
        receiver = context.receiver(settings["topic"], on_event=_report)
        say({"ready": True, "ports": context.ports(), "known": len(ledger.numbers)})
        while len(ledger.numbers) < settings["messages"]:
            message = await anext(receiver)
            ledger.write(message)
            message.consumed()
            if time.monotonic() - reported > REPORT_SECONDS:
                reported = time.monotonic()
                say({"delivered": len(ledger.numbers)})
        say({"delivered": len(ledger.numbers), "done": True})
        await until_interrupted()
    return 0


def _report(event: Event) -> None:
    if isinstance(event, UnrecoverableLoss):
        say({"lost": [event.first, event.last]})


if __name__ == "__main__":
    raise SystemExit(guarded(lambda: run_loop(_main(json.loads(sys.argv[1])))))
