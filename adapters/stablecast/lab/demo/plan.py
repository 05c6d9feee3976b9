"""Who is killed, and when."""

import random

import attrs

KINDS = ("receiver", "source", "store", "all")
"""What a crash hits, in the order of the crashes."""

SPREAD = 0.04
"""A crash comes within this fraction of the messages around its place."""

AWAY_SECONDS = (0.2, 0.6)
"""The shortest and the longest time that a victim stays away."""


@attrs.frozen
class Crash:
    """Who is killed, when so many messages are delivered, and for how long it stays away.

    `choice` decides, by its remainder, which of several candidates it is.
    """

    kind: str
    delivered: int
    seconds: float
    choice: int


def plan(messages: int, seed: int) -> list[Crash]:
    """One crash of each kind; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  # a schedule, not a secret
    crashes = []
    for place, kind in enumerate(KINDS, 1):
        at = place / (len(KINDS) + 1) + chance.uniform(-SPREAD, SPREAD)
        crashes.append(Crash(kind, max(1, int(at * messages)), chance.uniform(*AWAY_SECONDS), chance.getrandbits(16)))
    return crashes
