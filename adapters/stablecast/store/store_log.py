"""The log of a store, and its counts of events. Codes are stable; spec/store_daemon.md lists them."""

from collections import Counter

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import events
from stablecast.core.protocol.messages import Refused, Register, Registered, Role
from stablecast.core.protocol.refusals import difference
from stablecast.runtime.line_budget import LineBudget
from stablecast.store.journal import JournalError
from stablecast.store.limits import OverLimit
from stablecast.store.log_lines import Severity, Write
from stablecast.text import plural

EVERY = 1000
"""Events that may repeat without end: the first is logged, and then one in this many."""

NAMED_DAMAGES = 20
"""Damaged runs of messages that are logged one by one. Later ones are logged once in `EVERY`."""


_FAREWELLS = {
    events.Farewell.EXPIRED: "it was silent for {seconds:.0f} s, and its state lifetime is over",
    events.Farewell.DEREGISTERED: "it deregistered",
    events.Farewell.SOURCE_GONE: "its source is forgotten",
}


ASKED = "other stores are asked for them"
VAIN = "no other store sent them"
WHOLE = "nothing is lacking any more"
"""The begin of a refill, the end of a round without help, and the end, for people, and for simulated worlds that wait
until stores have healed."""

LACKS = {
    events.LackCause.AWAY: "the store was away or too slow, and lacks {}",
    events.LackCause.EMPTY: "the store lost its disk and lacks {}",
    events.LackCause.DAMAGED: "the disk cannot read {}",
    events.LackCause.NO_ROOM: "{} found no room (repository-size-limit)",
}
"""The causes for which messages are lacking, for people."""


class StoreLog:
    """Counts oddities and events, and logs those that matter.

    Attributes:
        expired: The count of sources whose state lifetime ended.
        expired_messages: The count of messages that were forgotten with them.
    """

    def __init__(self, name: str, log: Write, oddities: Counter[str], events: Counter[str]) -> None:
        """Log for the store `name`, and count in `oddities` and `events`."""
        self._name = name
        self._log = log
        self.expired = 0
        self.expired_messages = 0
        self._oddities = oddities
        self._events = events
        self._budget = LineBudget(lambda text: self.write(Severity.WARNING, "clients", text))

    def write(self, severity: Severity, code: str, text: str) -> None:
        self._log(severity, self._name, code, text)

    def _client(self, severity: Severity, code: str, text: str) -> None:
        """Log what became of a client, within the budget."""
        if self._budget.take():
            self.write(severity, code, text)

    def resolution(self, text: str, warning: bool) -> None:
        """Log a remark of topic resolution: a second store of the same name (P-206), a relay that is away."""
        self.write(Severity.WARNING if warning else Severity.INFO, "resolution", text)

    def granted(self, message: Registered, to: str, topic: str) -> None:
        what = "registered again" if message.old else "registered"
        code = f"{message.role.name.lower()}-registered"
        who = f"{to} for topic {topic!r}"
        self._client(Severity.INFO, code, f"{who}: RegID {message.reg_id} {what}, life {message.incarnation:#x}")

    def denied(self, message: Refused, to: str, asked: Register | None) -> None:
        """Log the machine's refusal of a registration, with the option that does not fit; None: it is not known."""
        who = to if asked is None else f"{to} for topic {asked.topic!r}"
        told = "" if asked is None else difference(asked, message)
        text = f"{who}: RegID {message.reg_id} is refused: {message.reason.text}{': ' if told else ''}{told}"
        self._client(Severity.WARNING, f"{message.role.name.lower()}-refused", text)

    def refused(self, request: Register, why: OverLimit) -> None:
        code = f"{request.role.name.lower()}-refused"
        self._client(Severity.WARNING, code, f"{request.reply_to} for topic {request.topic!r} is refused: {why.text}")

    def damaged(self, source_reg_id: int, first: int, last: int, error: JournalError) -> None:
        """Count and log messages that the disk cannot read."""
        records = self._oddities["damaged"]
        self._oddities["damaged"] += 1
        if records < NAMED_DAMAGES or records % EVERY == 0:
            text = f"source {source_reg_id}: {first}..{last} are not kept any more, {records + 1} such runs so far"
            self.write(Severity.ERROR, "damaged", f"{text}: {error}")

    def _forgotten(self, event: events.ClientForgotten) -> None:
        """Log a client whose state was forgotten: its messages, and the reason.

        This is a warning if stable messages were forgotten because of age.
        """
        own = event.role is Role.SOURCE
        held = plural(event.messages, "message")
        if own:
            went = f"and {held} up to number {event.newest} with it" if event.messages else "and no message with it"
        else:
            went = f"which had still to acknowledge {held} of source {event.source_reg_id}"
        why = _FAREWELLS[event.why].format(seconds=event.silent_ns / SECOND)
        lost = event.messages and event.why is events.Farewell.EXPIRED
        if own and event.why is events.Farewell.EXPIRED:
            self.expired += 1
            self.expired_messages += event.messages
        who = f"{event.role.name.lower()} {event.reg_id} of topic {event.topic!r} is forgotten"
        write = self.write if lost else self._client
        write(Severity.WARNING if lost else Severity.INFO, "client-deleted", f"{who}, {went}: {why}")

    def _not_refilled(self, event: events.NotRefilled) -> None:
        """Log messages that no other store sent."""
        lacks = LACKS[event.cause].format(plural(event.messages, "message"))
        where = f"source {event.source_reg_id}: {lacks} of {event.first}..{event.last}"
        again = "when another store registers" if event.final else "later"
        text = f"{where}, and {VAIN}; they are asked for again {again}"
        self.write(Severity.WARNING, "not-refilled", text)

    def event(self, event: events.Event) -> None:
        """Count an event of the machine, and log it if it matters."""
        if isinstance(event, events.Oddity):
            self._oddities[event.code] += 1
            if self._oddities[event.code] % EVERY == 1:
                self.write(Severity.INFO, event.code, event.text)
            return
        kind = type(event).__name__
        self._events[kind] += 1
        match event:
            case events.ClientForgotten():
                self._forgotten(event)
            case events.ReleasedUnread():
                text = f"source {event.source_reg_id}: messages below {event.number} went before receiver "
                self.write(Severity.WARNING, "released-unread", f"{text}{event.receiver_reg_id} consumed them")
            case events.LostAtStore():
                what = "a burst of losses" if event.burst else "the source cannot send again"
                text = f"source {event.source_reg_id}: {what} {event.first}..{event.last}"
                self.write(Severity.WARNING, "burst-loss" if event.burst else "loss", text)
            case events.RefillStarted():
                text = f"source {event.source_reg_id}: {LACKS[event.cause].format(plural(event.messages, 'message'))}"
                self.write(Severity.WARNING, "refill-started", f"{text}; {ASKED}")
            case events.Refilled():
                text = f"source {event.source_reg_id}: {WHOLE}"
                self.write(Severity.INFO, "refilled", f"{text}, {plural(event.messages, 'message')} came back")
            case events.NotRefilled():
                self._not_refilled(event)
            case events.OlderCopy():
                text = f"this directory is an older copy: it counts {plural(event.generation, 'start')} and stops, and "
                text += f"others know {event.known}; the store has no vote at first, and asks other stores for the rest"
                self.write(Severity.ERROR, "older-copy", f"{text}. Next time run stablecast store restore first")
            case events.HistoryForgotten():
                text = f"source {event.source_reg_id}: this store missed more lives of the source than are remembered"
                text += f" and removed {event.first}..{event.last}; other stores still hold what was stable"
                self.write(Severity.WARNING, "history-forgotten", text)
            case events.ProxyStarted() | events.ProxyEnded():
                code = "proxy-started" if isinstance(event, events.ProxyStarted) else "proxy-ended"
                self.write(Severity.INFO, code, f"source {event.source_reg_id}")
            case events.MessagesDropped() | events.RequestsDropped():
                if self._events[kind] % EVERY == 1:
                    code = "messages-dropped" if isinstance(event, events.MessagesDropped) else "requests-dropped"
                    self.write(Severity.WARNING, code, f"{self._events[kind]} times so far: {event}")
