"""Findings about topic resolution: queries without an answer, and topics that a receiver gets and does not want."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from stablecast.evidence.capture.doctor.findings import CaptureAdvice, milliseconds, percent
from stablecast.evidence.capture.doctor.resolution_history import ContextHistory, ResolutionHistory
from stablecast.evidence.capture.doctor.session_history import SessionHistory
from stablecast.evidence.capture.doctor.thresholds import Thresholds
from stablecast.evidence.capture.ports import TransportKey
from stablecast.text import plural

FEW: Final = 100
"""Messages of a session that say nothing yet about the share of its topics."""

MAX_NAMES: Final = 5
"""Topics that a finding names, at most."""


def deaf(history: ResolutionHistory, thresholds: Thresholds) -> Iterator[CaptureAdvice]:
    """Yield contexts that ask for a topic again and again, without an advertisement in the capture."""
    for context, topic, row in history.rows():
        if row.count >= thresholds.deaf > 0:
            spent = milliseconds(row.last_ns - row.first_ns)
            yield CaptureAdvice(
                "deaf",
                context.name,
                f"asks for topic '{topic}' {row.count} times in {spent:,} ms, and no advertisement of it is captured",
                "Check that a source of this topic runs, that its name is spelled alike, and that both sides resolve "
                "at the same place: the same group (resolver_multicast_address, resolver_multicast_port) or relay "
                "(resolver_unicast_daemon).",
                row.count,
                thresholds.deaf,
                (row.frame,),
                {"topic": topic, "milliseconds": spent},
            )


def unwanted(
    history: ResolutionHistory, sessions: Mapping[TransportKey, SessionHistory], thresholds: Thresholds
) -> Iterator[CaptureAdvice]:
    """Yield contexts that get a session for one of its topics, and do not want most of its messages."""
    for context in history.contexts.values():
        for session, followed in sessions.items():
            topics = followed.topics - context.before.get(session, Counter())
            yield from _shares(history, context, session, followed.name, topics, thresholds)


def _shares(
    history: ResolutionHistory,
    context: ContextHistory,
    session: TransportKey,
    name: str,
    topics: Mapping[int, int],
    thresholds: Thresholds,
) -> Iterator[CaptureAdvice]:
    named = {index: history.names.get((session, index)) for index in topics}
    wanted = {index for index, topic in named.items() if context.wants(topic)}
    total = sum(topics.values())
    if total < FEW or not any(named[index] is not None for index in wanted):
        return
    others = sorted(named[index] or "?" for index in topics if index not in wanted)
    share = sum(count for index, count in topics.items() if index not in wanted) / total
    if not others or share < thresholds.unwanted:
        return
    shown = ", ".join(f"'{topic}'" for topic in others[:MAX_NAMES]) + (", ..." if len(others) > MAX_NAMES else "")
    yield CaptureAdvice(
        "unwanted",
        context.name,
        f"gets {plural(total, 'message')} of {name}, and does not ask for the topics of {percent(share)} of them: "
        f"{shown}",
        "Topics of a session reach every receiver of the session, which then drops what it does not want. Give these "
        "topics a session of their own: another group or port at the source (transport_lbtrm_multicast_address, "
        "transport_lbtrm_destination_port), by the interests of the receivers.",
        share,
        thresholds.unwanted,
        (context.frame,),
        {"messages": total, "topics": others[:MAX_NAMES]},
    )
