"""The thresholds of the doctor, each an option `name=value`."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import attrs

from stablecast.evidence.capture.files import CaptureError


def _threshold(default: float, unit: str, meaning: str) -> Any:
    return attrs.field(default=default, metadata={"unit": unit, "meaning": meaning})


@attrs.frozen
class Thresholds:
    """The values from which on something is a finding."""

    loss: float = _threshold(0.001, "share", "datagrams of a session that a receiver asks for again")
    late: float = _threshold(0.001, "share", "datagrams that come after their receiver asked for them")
    slow_recovery: float = _threshold(500, "ms", "time from sending to repair that one of 100 losses exceeds")
    refused: float = _threshold(1, "datagrams", "repairs that were lost and then refused by the ignore interval")
    tail_loss: float = _threshold(1, "datagrams", "losses that only a session message shows, because nothing follows")
    unrepaired: float = _threshold(1, "datagrams", "losses that a living source does not repair")
    early_exit: float = _threshold(1, "datagrams", "losses that are open when the source ends")
    storm: float = _threshold(1000, "numbers/s", "numbers that receivers of a session ask for in one second")
    duplicates: float = _threshold(0.01, "share", "repairs that nobody asked for")
    limited: float = _threshold(1, "datagrams", "NAKs that a rate limit delays")
    rate_limit: float = _threshold(20, "bursts", "equal bursts of a source at equal times, one after the other")
    silence: float = _threshold(12_000, "ms", "time in which a living source sends nothing")
    session_messages: float = _threshold(0.02, "share", "session messages of a source that the capture lacks")
    unwanted: float = _threshold(0.5, "share", "messages of its sessions that a receiver does not want")
    deaf: float = _threshold(10, "queries", "queries for a topic in a row without an advertisement")
    domain_numbers: float = _threshold(2, "numbers", "numbers of one domain")
    second_router: float = _threshold(10, "turns", "turns of two routers that announce the same routes in a domain")
    no_route: float = _threshold(10, "advertisements", "advertisements from a domain to which no router leads")
    unanswered: float = _threshold(1, "symbols", "topics and patterns for which a context did not answer a router")
    missing: float = _threshold(0.001, "share", "datagrams that the capture misses, and that no receiver asks for")
    truncated: float = _threshold(0.001, "share", "packets of the protocol that the snap length of the capture cut")
    copies: float = _threshold(0.01, "share", "packets that were captured twice")
    disorder: float = _threshold(0.01, "share", "packets that were captured before the packet in front of them")
    clock: float = _threshold(1, "steps", "steps back of the capture's clock by more than a second")


def parse_thresholds(texts: Iterable[str]) -> Thresholds:
    """Return the default thresholds with those of `name=value` texts. Raise CaptureError for any other text."""
    given: dict[str, float] = {}
    names = {field.name.replace("_", "-"): field.name for field in attrs.fields(Thresholds)}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in names:
            near = get_close_matches(name, names, 1) or sorted(names)
            raise CaptureError(f"there is no threshold '{name}'; there are {', '.join(near)}")
        try:
            given[names[name]] = float(value)
        except ValueError:
            raise CaptureError(f"threshold {name} must be a number, not '{value}'") from None
        if not given[names[name]] >= 0:
            raise CaptureError(f"threshold {name} must be at least 0, not {value}")
    return Thresholds(**given)
