"""Derive findings from the records of stores, sources and receivers; a code never changes its meaning.

A store does not know how many other stores hold a message. It knows which messages exist and are not here. A hole is
one copy fewer than the source counts on while the hole is open; a lost message is one copy fewer for ever.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import partial
from typing import Any

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import OlderCopy
from stablecast.ops.monitor.figures import short
from stablecast.store.observatory import ReceiverView, SourceView, StoreView
from stablecast.text import plural

LAG_SHARE = 0.5
"""Share of the held messages that a receiver may lag behind before it is late, beyond `LAG_MESSAGES`."""
LAG_MESSAGES = 1000
"""Messages that every receiver may lag behind."""
AWAY = "inactive: it was silent for longer than its activity timeout; evict it if it will not return"
"""Text for a source or receiver that is registered and not active."""
ENDED = "it ended: nobody listens at its address any more"
"""Text for one that is known to have ended, by itself or by a crash."""
NEARLY_FULL = 0.9
"""Share of a limit from which on a finding warns of it."""


LACKS = (
    "the store was away or too slow",
    "the store lost its disk",
    "the disk cannot read them",
    "they found no room (repository-size-limit)",
)
"""The causes of `SourceView.lacking`."""


class Urgency(IntEnum):
    OK = 0
    NOTICE = 1
    WARNING = 2
    CRITICAL = 3


@attrs.frozen
class HealthFinding:
    """Describe a condition to look at: its urgency, a stable code and one sentence."""

    level: Urgency
    code: str
    text: str

    def as_json(self) -> dict[str, Any]:
        return {"level": self.level.name, "code": self.code, "text": self.text}


_notice = partial(HealthFinding, Urgency.NOTICE)
_warning = partial(HealthFinding, Urgency.WARNING)
_critical = partial(HealthFinding, Urgency.CRITICAL)


def of_receiver(receiver: ReceiverView, source: SourceView) -> Iterator[HealthFinding]:
    trail, _, _ = source.window
    if receiver.acknowledged + 1 < trail:
        gone = trail - receiver.acknowledged - 1
        yield _warning("unread-let-go", f"{plural(gone, 'message', 'was', 'were')} deleted before it acknowledged them")
    if receiver.ended:
        yield _notice("receiver-ended", ENDED)
    elif not receiver.active:
        yield _warning("receiver-silent", AWAY)
    if receiver.lag > max(LAG_MESSAGES, LAG_SHARE * source.messages):
        late = _notice if receiver.ended else _warning
        yield late("receiver-late", f"{plural(receiver.lag, 'message')} behind, of {source.messages:,} held")


def of_source(source: SourceView) -> Iterator[HealthFinding]:
    """Yield the findings of a source and its repository, without its receivers."""
    _, newest_burst, bursts = source.bursts
    if bursts and source.given_up:
        lost = "burst of messages was lost" if bursts == 1 else "bursts of messages were lost"
        text = f"{bursts:,} {lost} here, the newest up to {newest_burst:x}: find the cause"
        yield _critical("burst-lost", text)
    if source.given_up:
        text = f"{plural(source.given_up, 'message', 'was', 'were')} lost here, and no other store has sent them"
        yield _critical("lost", f"{text}: find the cause")
    elif source.lost and not any(source.lacking):
        text = f"{plural(source.lost, 'message', 'was', 'were')} lost here since the store started"
        yield _notice("was-lost", f"{text}; other stores sent them, or a rule released them")
    if source.holes:
        yield _warning("under-replicated", f"{plural(source.holes, 'message', 'is', 'are')} missing here and requested")
    for messages, why in zip(source.lacking, LACKS, strict=True):
        if messages:
            text = f"{plural(messages, 'message')} below their replication for {source.lacking_ns // SECOND:,} s: {why}"
            yield _warning("lacking", f"{text}, and other stores are asked for them")
    yield from _of_space(source)
    if source.ended:
        yield _notice("source-ended", ENDED)
    elif not source.active:
        yield _warning("source-silent", AWAY)
    if source.proxied:
        yield _notice("proxy", "a proxy stands in for the source")


def _of_space(source: SourceView) -> Iterator[HealthFinding]:
    active, drops = source.drops
    if active:
        yield _warning("dropping", f"{plural(active, 'message', 'is', 'are')} being dropped at the size limit")
    elif drops:
        yield _notice("dropped", f"{plural(drops, 'message', 'was', 'were')} dropped at the size limit so far")
    used, _, limit = source.memory
    if limit and used > NEARLY_FULL * limit:
        yield _warning("memory-nearly-full", "the memory is nearly full: new messages may be dropped")
    _, disk_used, disk_limit = source.offsets
    if source.paced and disk_limit and disk_used > NEARLY_FULL * disk_limit:
        yield _warning("disk-nearly-full", "the disk limit is near: the source will have to wait")


def of_store(store: StoreView) -> Iterator[HealthFinding]:
    if store.failure:
        yield _critical("disk-failed", store.failure)
    free, least = store.room
    if 0 <= free < least:
        text = f"the journal has {free >> 20:,} MiB of free space, less than {least >> 20:,} MiB: free some"
        yield _warning("room-low", f"{text}, or the store will stop serving")
    damaged = store.oddities.get("damaged", 0)
    if damaged:
        text = f"{damaged:,} runs of messages could not be read: check the disk, the log names the files"
        yield _critical("damaged", text)
    if store.events.get(OlderCopy.__name__):
        text = "the directory was an older copy: the store has no vote about older messages of a source at first"
        yield _warning("older-copy", f"{text}. Before the next such start, run stablecast store restore DIRECTORY")
    if store.muted_for_ns:
        seconds = -(-store.muted_for_ns // SECOND)
        text = f"registrations are refused for another {seconds} s: an earlier journal may have been lost"
        yield _warning("muted", text)
    if store.journal.pressure:
        text = (
            f"the disk is slow: {store.journal.queued_bytes >> 20} MiB wait for it, and nothing is received meanwhile"
        )
        yield _warning("slow-disk", text)
    _, _, _, dropped, _, ever_dropped = store.requests
    if dropped >= 1:
        yield _warning("requests-dropped", f"{short(dropped)} requested messages per second are dropped")
    elif ever_dropped:
        yield _notice("requests-were-dropped", f"{ever_dropped:,} requested messages were dropped so far")
    sources, messages = store.expired
    if messages:
        text = f"{plural(sources, 'source', 'was', 'were')} removed when the state lifetime ended, with"
        yield _warning("state-let-go", f"{text} {plural(messages, 'message')}: the log names them")
    known, most = store.clients
    if most and known > NEARLY_FULL * most:
        text = f"{known:,} of {most:,} clients have state here: evict those that will not return"
        yield _warning("clients-nearly-full", text)
    if store.draining:
        yield _notice("draining", "new clients are refused; registered clients are served")


def worst(findings: Iterable[HealthFinding]) -> Urgency:
    return max((finding.level for finding in findings), default=Urgency.OK)
