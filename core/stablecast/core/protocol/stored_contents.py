"""The question what a store holds of a topic, and its answer, one for each source. Readers ask it.

Both are extensions of the messages with which a receiver asks for the facts about a source. A store that does not know
them drops the question as any other SRI_REQ, and answers nothing. Numbers are extended, times in ns of the epoch.
"""

import attrs

from stablecast.core.protocol.messages import Address, SourceInfo, SourceInfoRequest

MAX_RANGES = 256
"""Ranges of numbers in one answer; the reader asks again from the last of them on."""

MAX_TIMES = 1024
"""Runs whose times are in one answer."""

PAGE = 64
"""Sources in one page of answers."""

Range = tuple[int, int]
"""Numbers [first, stop)."""


@attrs.frozen(kw_only=True)
class StoredQuestion(SourceInfoRequest):
    """A reader asks a store which messages it holds.

    Attributes:
        request: Repeated in the answers.
        reply_to: The request port of the reader.
        topic: Empty: all topics.
        reg_id: Only this source of the store; 0: all of the topic.
        after: Only sources with a higher RegID at the store, for the next page.
        first: Only ranges from this number on.
        since, until: Times whose first numbers are wanted.
        timed: The stop of the range from `first` on for which times are wanted; 0: none.
    """

    incarnation: int = 0
    request: int
    reply_to: Address
    topic: str = ""
    reg_id: int = 0
    after: int = 0
    first: int = 0
    since: int | None = None
    until: int | None = None
    timed: int = 0


@attrs.frozen(kw_only=True)
class StoredAnswer(SourceInfo):
    """A store holds these messages of one source; `low` and `high` are 32 bits of the first and last number.

    The numbers of its `lives` are extended, like all others.

    Attributes:
        answered: The `request` of the question.
        reg_id: The RegID of the source at the store; 0: the store holds nothing that was asked for.
        session_id: 0 if the source has none.
        trail: The oldest number that may still be kept; lower ones went by a limit, or were never sent.
        ranges: The synced numbers, ascending, at most `MAX_RANGES`.
        reach: The number up to which `ranges` are complete.
        stored_bytes: The bytes of payload that the store keeps of the source.
        oldest, newest: When the first and the last message came; None: not known.
        since, until: The first numbers that came at the times of the question, or later; None: not asked.
        more: Sources that follow in the same page.
        whole: This page is the last.
        times: (first number, time) of runs in the asked range, ascending, at most `MAX_TIMES`.
        readable: False while the store does not know where the newest life of the source resumes. Until then the answer
            is about the life before, and the store serves none of its messages: some may be a dead tail.
    """

    answered: int
    reg_id: int = 0
    session_id: int = 0
    trail: int = 0
    ranges: tuple[Range, ...] = ()
    reach: int = 0
    stored_bytes: int = 0
    oldest: int | None = None
    newest: int | None = None
    since: int | None = None
    until: int | None = None
    more: int = 0
    whole: bool = True
    times: tuple[tuple[int, int], ...] = ()
    readable: bool = True
