"""The question of a reader and the answers of stores on the wire."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.messages import SourceInfo, SourceInfoRequest
from stablecast.core.protocol.stored_contents import MAX_RANGES, MAX_TIMES, StoredAnswer, StoredQuestion
from stablecast.transports import codec
from stablecast.transports.codec import extended_options, stored_contents
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError

NUMBER = st.integers(0, 2**62)
TIME = st.none() | st.integers(0, 2**62)
ANSWER = StoredAnswer(
    incarnation=5 << 32 | 1,
    topic="orders",
    version=0,
    low=1,
    high=9,
    request="127.0.0.1:14567",
    group_sizes=(3,),
    confirmations=False,
    stores=(),
    term=2,
    lives=((5 << 32 | 1, 0),),
    answered=5,
)


def through(message: StoredQuestion | StoredAnswer) -> object:
    decoded, size = lbmc.decode(codec.encode(message))
    assert size == len(codec.encode(message))
    return codec.decode(decoded)


@given(NUMBER, TIME, TIME, st.text(max_size=60).filter(lambda text: "\0" not in text), st.integers(0, 2**32 - 1))
def test_a_question_comes_back(first: int, since: int | None, until: int | None, topic: str, reg_id: int) -> None:
    question = StoredQuestion(
        request=reg_id, reply_to="10.1.2.3:65535", topic=topic, reg_id=reg_id, first=first, since=since, until=until
    )
    assert through(question) == question


@given(st.lists(NUMBER, max_size=30, unique=True).map(sorted), TIME, TIME, st.integers(0, 2**64 - 1), st.booleans())
def test_an_answer_comes_back(
    edges: list[int], oldest: int | None, since: int | None, session: int, whole: bool
) -> None:
    ranges = tuple(zip(edges[::2], edges[1::2], strict=False))
    answer = attrs.evolve(
        ANSWER, ranges=ranges, oldest=oldest, since=since, session_id=session, whole=whole, times=((1, 2),), more=3
    )
    assert through(answer) == answer


def test_the_lives_of_an_answer_are_beyond_what_the_wire_can_tell_apart() -> None:
    """A reader compares them with the numbers of the ranges, which have 64 bits."""
    first = 3 << 32
    lives = ((5 << 32 | 1, first), (5 << 32 | 2, first + 7))
    answer = attrs.evolve(ANSWER, lives=lives, ranges=((first, first + 9),), reach=first + 9)
    assert through(answer) == answer


def test_the_largest_answer_fits_one_message() -> None:
    answer = attrs.evolve(
        ANSWER,
        ranges=tuple((10 * number, 10 * number + 5) for number in range(MAX_RANGES)),
        times=tuple((number, 2**60) for number in range(MAX_TIMES)),
        lives=tuple((number + 1, number) for number in range(64)),
    )
    assert through(answer) == answer


def test_a_reader_of_an_older_release_sees_the_public_messages() -> None:
    """The options are all that is added: without them an SRI_REQ and an SRI are left."""
    for message, kind in ((StoredQuestion(request=1, reply_to="127.0.0.1:9"), SourceInfoRequest), (ANSWER, SourceInfo)):
        decoded, _ = lbmc.decode(codec.encode(message))
        plain = attrs.evolve(
            decoded, headers=tuple(header for header in decoded.headers if not isinstance(header, h.ExtendedOption))
        )
        assert type(codec.decode(plain)) is kind
        assert all(
            header.flags == extended_options.FLAGS for header in decoded.headers if isinstance(header, h.ExtendedOption)
        )


@pytest.mark.parametrize(
    ("subtype", "data"),
    [
        (stored_contents.QUESTION, bytes(3)),
        (stored_contents.QUESTION, bytes(400)),
        (stored_contents.ANSWER, bytes(3)),
        (stored_contents.ANSWER, bytes(113)),
    ],
)
def test_malformed_options_are_refused(subtype: int, data: bytes) -> None:
    carrier = ANSWER if subtype == stored_contents.ANSWER else StoredQuestion(request=1, reply_to="127.0.0.1:9")
    decoded, _ = lbmc.decode(codec.encode(carrier))
    headers = [header for header in decoded.headers if not isinstance(header, h.ExtendedOption)]
    wrong = attrs.evolve(decoded, headers=(*headers, *extended_options.encode_option(subtype, data)))
    with pytest.raises(WireError):
        codec.decode(wrong)


def test_ranges_that_do_not_ascend_are_refused() -> None:
    for ranges in (((5, 5),), ((5, 4),), ((1, 3), (3, 5)), ((5, 6), (1, 2))):
        with pytest.raises(WireError):
            through(attrs.evolve(ANSWER, ranges=ranges))
