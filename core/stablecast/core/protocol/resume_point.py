"""The resume point of a source and the low number of a receiver, computed from the stores' grants.

All functions are pure. Grants have 32-bit numbers; results are extended near `near`.
"""

from collections.abc import Sequence

from stablecast.core.machine import serial
from stablecast.core.protocol.messages import Registered
from stablecast.core.protocol.quorum import Consensus, Quorums, agree, quorum_of


def span(low: int, high: int, near: int) -> tuple[int, int]:
    """Return the extended numbers of wire `low`..`high`, low closest to `near`; an empty span has high = low - 1.

    >>> span(low=5, high=4, near=0), span(low=5, high=3_000_000_000, near=0)
    ((5, 4), (5, 3000000000))
    """
    first = serial.extend(low, near)
    return (first, first - 1 + (high - low + 1) % serial.MODULUS)


def offer(answer: Registered, near: int) -> tuple[int, int]:
    """Return the extended (low, high) of a grant; high is low - 1 when the store holds nothing."""
    return span(answer.low, answer.high, near)


def used(answer: Registered, near: int) -> int:
    """Return the newest number that a grant shows to be used, held by its store or not (formal design, 7.11)."""
    high = offer(answer, near)[1]
    return high if answer.known is None else max(high, serial.extend(answer.known, high))


def resume_point(answers: Sequence[Registered], consensus: Consensus, quorums: Quorums) -> int:
    """Return the first number that a source sends: one above the consensus of the stores' newest (T5, P-415, P-416).

    `lowest` and `highest` consider all answers. `majority` is the number that a quorum of a group holds or exceeds, and
    of several groups the newest (C-15). A group without a quorum of answers has no majority; if no group has one, the
    lowest answer counts. Raises ValueError without an answer.
    """
    if not answers:
        raise ValueError("a resume point needs at least one grant")
    near = serial.extend(answers[0].low, 0)
    newest = [(answer.store_index, used(answer, near)) for answer in answers]
    everywhere = [high for _, high in newest]
    if consensus is not Consensus.MAJORITY:
        return agree(everywhere, consensus, len(newest)) + 1
    groups = zip(quorums.members, quorums.rules.sizes, strict=True)
    held = [([high for store, high in newest if mask >> store & 1], size) for mask, size in groups]
    # A group without a quorum may lack the newest numbers, so its answers are no majority.
    majorities = [agree(highs, consensus, size) for highs, size in held if len(highs) >= quorum_of(size)]
    return max(majorities, default=min(everywhere)) + 1


def receiver_low(answers: Sequence[Registered], consensus: Consensus, near: int) -> int:
    """Return the number at which a receiver's history begins (P-417, P-418). Raises ValueError without an answer.

    It is one above the receiver's acknowledgements, by `consensus` of the stores that know them, or else the lowest
    offer.
    """
    known = [offer(answer, near)[0] for answer in answers if answer.old]
    if known:
        return agree(known, consensus, len(known))
    return agree([offer(answer, near)[0] for answer in answers], Consensus.LOWEST, len(answers))


def start_number(low: int, high: int, maximum: int, wish: int) -> int:
    """Return the number at which recovery starts (T9, T10, P-421..P-426), at most `high` + 1.

    `low` comes from the stores, `high` is the newest number. A `wish` equal to `low` is no wish: then `maximum` counts.

    >>> start_number(low=1, high=6, maximum=2, wish=1), start_number(low=1, high=6, maximum=2, wish=2)
    (4, 2)
    >>> start_number(low=1, high=6, maximum=0, wish=11)
    7
    """
    if wish == low and maximum:
        wish = max(low, high - maximum)
    # A start beyond the end is moved back, and then nothing is requested (T10, P-426).
    return min(wish, high + 1)
