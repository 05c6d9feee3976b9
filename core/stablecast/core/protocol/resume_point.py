"""Where to go on: the resume point of a source and the low number of a receiver, from what the stores answered.

All pure functions over grants; numbers in are 32-bit, numbers out extended near `near`.
"""

from collections.abc import Sequence

from stablecast.core.machine import serial
from stablecast.core.protocol.messages import Registered
from stablecast.core.protocol.quorum import Consensus, Quorums, agree, quorum_of


def span(low: int, high: int, near: int) -> tuple[int, int]:
    """The extended numbers of wire `low`..`high`, low closest to `near`; an empty span has high = low - 1.

    >>> span(low=5, high=4, near=0), span(low=5, high=3_000_000_000, near=0)
    ((5, 4), (5, 3000000000))
    """
    first = serial.extend(low, near)
    return (first, first - 1 + (high - low + 1) % serial.MODULUS)


def offer(answer: Registered, near: int) -> tuple[int, int]:
    """The extended (low, high) of a grant; high is low - 1 when the store holds nothing."""
    return span(answer.low, answer.high, near)


def resume_point(answers: Sequence[Registered], consensus: Consensus, quorums: Quorums) -> int:
    """The first number a source sends: one above the consensus of the stores' newest (T5, P-415, P-416).

    `lowest` and `highest` look at all answers; `majority` takes the number that a quorum of a group holds or exceeds,
    and of several groups the newest (C-15). A group of which no quorum answered has no majority; where none has one,
    the lowest answer counts. Raises ValueError without an answer.
    """
    if not answers:
        raise ValueError("a resume point needs at least one grant")
    near = serial.extend(answers[0].low, 0)
    newest = [(answer.store_index, offer(answer, near)[1]) for answer in answers]
    everywhere = [high for _, high in newest]
    if consensus is not Consensus.MAJORITY:
        return agree(everywhere, consensus, len(newest)) + 1
    groups = zip(quorums.members, quorums.rules.sizes, strict=True)
    held = [([high for store, high in newest if mask >> store & 1], size) for mask, size in groups]
    majorities = [agree(highs, consensus, size) for highs, size in held if len(highs) >= quorum_of(size)]
    return max(majorities, default=min(everywhere)) + 1


def receiver_low(answers: Sequence[Registered], consensus: Consensus, near: int) -> int:
    """Where a receiver's history begins (P-417, P-418).

    Behind its acknowledgements at the stores that know them, by `consensus`; the lowest on offer when none does. Raises
    ValueError without an answer.
    """
    known = [offer(answer, near)[0] for answer in answers if answer.old]
    if known:
        return agree(known, consensus, len(known))
    return agree([offer(answer, near)[0] for answer in answers], Consensus.LOWEST, len(answers))


def start_number(low: int, high: int, maximum: int, wish: int) -> int:
    """Where recovery starts: the stores' `low`, the newest number, the application's wish (T9, T10, P-421..P-426).

    A wish equal to `low` is no wish: then the request maximum counts. Nothing starts beyond `high` + 1.

    >>> start_number(low=1, high=6, maximum=2, wish=1), start_number(low=1, high=6, maximum=2, wish=2)
    (4, 2)
    >>> start_number(low=1, high=6, maximum=0, wish=11)
    7
    """
    if wish == low and maximum:
        wish = max(low, high - maximum)
    return min(wish, high + 1)
