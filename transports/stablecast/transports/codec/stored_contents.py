"""The question of a reader, and a store's answers, in extended options of SRI_REQ and SRI (spec/wire.md)."""

import struct
from typing import Any

from stablecast.core.protocol.stored_contents import MAX_RANGES, MAX_TIMES, StoredAnswer, StoredQuestion
from stablecast.transports.codec import extended_options
from stablecast.transports.codec.domains import split_domain
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError

QUESTION = 0x5351
"""Subtype of a question."""

ANSWER = 0x5352
"""Subtype of an answer."""

_QUESTION = struct.Struct(">I4sHBxIIqqqq")
_ANSWER = struct.Struct(">IIQqqQqqqqIBxHH2x")
_PAIR = struct.Struct(">qq")

SINCE = 0x01
UNTIL = 0x02
OLDEST = 0x04
NEWEST = 0x08
"""The field of a time or its number is valid."""
WHOLE = 0x10
READABLE = 0x20

MAX_TOPIC_BYTES = 255


def encode_question(question: StoredQuestion) -> tuple[h.Header, ...]:
    host, _, port = split_domain(question.reply_to)[1].rpartition(":")
    flags = (SINCE if question.since is not None else 0) | (UNTIL if question.until is not None else 0)
    octets = bytes(map(int, host.split(".")))
    data = _QUESTION.pack(
        question.request,
        octets,
        int(port),
        flags,
        question.reg_id,
        question.after,
        question.first,
        question.since or 0,
        question.until or 0,
        question.timed,
    )
    return extended_options.encode_option(QUESTION, data + question.topic.encode("utf-8", "surrogateescape"))


def decode_question(message: lbmc.Message, incarnation: int) -> StoredQuestion | None:
    """Return the question in an SRI_REQ; None if it has none. Raises WireError for malformed data."""
    data = extended_options.find_option(message, QUESTION)
    if not data:
        return None
    if not _QUESTION.size <= len(data) <= _QUESTION.size + MAX_TOPIC_BYTES:
        raise WireError(f"a question for contents cannot have {len(data)} bytes")
    request, host, port, flags, reg_id, after, first, since, until, timed = _QUESTION.unpack_from(data)
    topic = data[_QUESTION.size :].decode("utf-8", "surrogateescape")
    return StoredQuestion(
        incarnation=incarnation,
        request=request,
        reply_to=f"{'.'.join(map(str, host))}:{port}",
        topic=topic,
        reg_id=reg_id,
        after=after,
        first=first,
        since=since if flags & SINCE else None,
        until=until if flags & UNTIL else None,
        timed=timed,
    )


def encode_answer(answer: StoredAnswer) -> tuple[h.Header, ...]:
    flags = (
        (SINCE if answer.since is not None else 0)
        | (UNTIL if answer.until is not None else 0)
        | (OLDEST if answer.oldest is not None else 0)
        | (NEWEST if answer.newest is not None else 0)
        | (WHOLE if answer.whole else 0)
        | (READABLE if answer.readable else 0)
    )
    ranges, times = answer.ranges[:MAX_RANGES], answer.times[:MAX_TIMES]
    data = _ANSWER.pack(
        answer.answered,
        answer.reg_id,
        answer.session_id,
        answer.trail,
        answer.reach,
        answer.stored_bytes,
        answer.oldest or 0,
        answer.newest or 0,
        answer.since or 0,
        answer.until or 0,
        answer.more,
        flags,
        len(ranges),
        len(times),
    )
    return extended_options.encode_option(ANSWER, data + b"".join(_PAIR.pack(*pair) for pair in (*ranges, *times)))


def decode_answer(message: lbmc.Message) -> dict[str, Any] | None:
    """Return the fields that an answer adds to an SRI; None if it is only an SRI. Raises WireError."""
    data = extended_options.find_option(message, ANSWER)
    if not data:
        return None
    if len(data) < _ANSWER.size:
        raise WireError(f"an answer about contents cannot have {len(data)} bytes")
    answered, reg_id, session, trail, reach, size, oldest, newest, since, until, more, flags, ranges, times = (
        _ANSWER.unpack_from(data)
    )
    if len(data) != _ANSWER.size + _PAIR.size * (ranges + times) or ranges > MAX_RANGES or times > MAX_TIMES:
        raise WireError(f"an answer with {ranges} ranges and {times} times cannot have {len(data)} bytes")
    pairs = list(_PAIR.iter_unpack(data[_ANSWER.size :]))
    _check_ascending(pairs[:ranges])
    return {
        "answered": answered,
        "reg_id": reg_id,
        "session_id": session,
        "trail": trail,
        "ranges": tuple(pairs[:ranges]),
        "reach": reach,
        "stored_bytes": size,
        "oldest": oldest if flags & OLDEST else None,
        "newest": newest if flags & NEWEST else None,
        "since": since if flags & SINCE else None,
        "until": until if flags & UNTIL else None,
        "more": more,
        "whole": bool(flags & WHOLE),
        "times": tuple(pairs[ranges:]),
        "readable": bool(flags & READABLE),
    }


def _check_ascending(ranges: list[tuple[int, int]]) -> None:
    at = None
    for first, stop in ranges:
        if first >= stop or (at is not None and first <= at):
            raise WireError("the ranges of an answer are not ascending")
        at = stop
