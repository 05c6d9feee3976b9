"""The interest of a domain: leases, leaves, questions and their rate. Rows R-020 to R-038."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.routing.interest import MAX_HOLDERS, DomainInterest
from stablecast.transports.wire.lbmr import PatternLanguage, Query, TopicQuery, WildcardQuery

ORDERS, TRADES = TopicQuery("orders"), TopicQuery("trades")
PATTERN = WildcardQuery(PatternLanguage.PCRE, "^ord")
A, B = b"context0", b"context1"


def play(interest: DomainInterest, until: int) -> Iterator[tuple[int, list[Query], list[Query]]]:
    """What is asked and what ends, with its time in seconds."""
    while (due := interest.next_timeout()) is not None and due <= until:
        asked, ended = interest.handle_timeout(due)
        if asked or ended:
            yield due // SECOND, asked, ended


@pytest.mark.rows("R-031", "R-032")
def test_a_receiver_that_died_is_forgotten_after_315_seconds() -> None:
    """R-031, R-032: a question after 300 s, five tries of 3 s."""
    interest = DomainInterest()
    assert interest.heard(ORDERS, A, 0)
    assert list(play(interest, 1_000 * SECOND)) == [
        (300, [ORDERS], []),
        (303, [ORDERS], []),
        (306, [ORDERS], []),
        (309, [ORDERS], []),
        (312, [ORDERS], []),
        (315, [], [ORDERS]),
    ]
    assert not interest.wanted


@pytest.mark.rows("R-031")
def test_a_sign_of_interest_suppresses_the_question() -> None:
    interest = DomainInterest()
    interest.heard(ORDERS, A, 0)
    assert not interest.heard(ORDERS, A, 299 * SECOND)
    assert [at for at, asked, _ in play(interest, 600 * SECOND) if asked] == [599]


def test_an_answer_renews_the_lease() -> None:
    interest = DomainInterest()
    interest.heard(ORDERS, A, 0)
    assert [at for at, _, _ in play(interest, 306 * SECOND)] == [300, 303, 306]
    interest.heard(ORDERS, B, 307 * SECOND)
    assert [at for at, _, _ in play(interest, 610 * SECOND)] == [607, 610]


@pytest.mark.rows("R-038")
def test_the_last_leave_ends_the_interest_at_once() -> None:
    """R-038."""
    interest = DomainInterest()
    interest.heard(ORDERS, A, 0)
    interest.heard(ORDERS, B, 0)
    interest.heard(ORDERS, B, 0)  # a set, not a count
    assert not interest.left(ORDERS, B, SECOND)
    assert interest.left(ORDERS, A, SECOND)
    assert not interest.left(ORDERS, A, SECOND)


def test_who_is_left_is_asked() -> None:
    """A holder that died must not outlive the last that took leave by the whole lease."""
    interest = DomainInterest()
    interest.heard(ORDERS, A, 0)
    interest.heard(ORDERS, B, 0)
    interest.left(ORDERS, B, 10 * SECOND)
    assert [(at, bool(ended)) for at, _, ended in play(interest, 100 * SECOND)][-1] == (25, True)


def test_a_crowd_ends_by_a_question_only() -> None:
    interest = DomainInterest()
    for number in range(MAX_HOLDERS + 1):
        interest.heard(ORDERS, number.to_bytes(8), 0)
    assert not any(interest.left(ORDERS, number.to_bytes(8), SECOND) for number in range(MAX_HOLDERS + 1))
    assert ORDERS in interest.wanted


def test_a_context_without_a_name_cannot_take_leave() -> None:
    interest = DomainInterest()
    interest.heard(ORDERS, b"", 0)
    assert not interest.left(ORDERS, b"", SECOND)
    assert interest.matches("orders")


@pytest.mark.rows("R-034")
def test_ten_thousand_topics_take_twenty_seconds() -> None:
    """R-034: 500 questions a second."""
    interest = DomainInterest()
    for number in range(10_000):
        interest.heard(TopicQuery(f"topic {number}"), A, 0)
    asked: list[int] = []
    while len(asked) < 10_000:
        due = interest.next_timeout()
        assert due is not None
        asked += [due for _ in interest.handle_timeout(due)[0]]
    first = asked[:10_000]
    assert 19 * SECOND <= first[-1] - first[0] <= 21 * SECOND
    for at in range(first[0], first[-1], SECOND):
        assert sum(at <= when < at + SECOND for when in first) <= 500


def test_patterns_match_and_topics_are_themselves() -> None:
    interest = DomainInterest()
    interest.heard(PATTERN, A, 0)
    interest.heard(TRADES, A, 0)
    assert [interest.matches(topic) for topic in ("orders", "trades", "disorder")] == [True, True, False]
    interest.left(PATTERN, A, 0)
    assert not interest.matches("orders")


@pytest.mark.parametrize("query", [WildcardQuery(PatternLanguage.PCRE, "(" * 9), TopicQuery(""), WildcardQuery(9, "a")])
def test_what_nobody_can_have_is_refused(query: Query) -> None:
    interest = DomainInterest()
    assert not interest.heard(query, A, 0)
    assert (interest.refused, len(interest.wanted)) == (1, 0)


def test_a_service_needs_no_questions() -> None:
    interest = DomainInterest()
    assert interest.tell(ORDERS)
    assert not interest.tell(ORDERS)
    assert interest.next_timeout() is None
    assert interest.ends(ORDERS)
    assert not interest.ends(ORDERS)


def test_what_a_service_tells_is_not_asked_for() -> None:
    """Its contexts may be heard over UDP, too."""
    interest = DomainInterest()
    interest.tell(ORDERS)
    interest.heard(ORDERS, A, 0)
    assert not interest.left(ORDERS, A, SECOND)
    interest.heard(ORDERS, A, 2 * SECOND)
    assert list(play(interest, 1_000 * SECOND)) == []
    assert interest.ends(ORDERS)
    interest.tell(TRADES)
    interest.heard(TRADES, A, 0)
    assert not interest.ends(TRADES)
    assert interest.left(TRADES, A, SECOND)


SIGNS = st.lists(
    st.tuples(st.sampled_from(["heard", "left"]), st.sampled_from([ORDERS, PATTERN]), st.sampled_from([A, B])),
    max_size=40,
)


@given(SIGNS)
def test_interest_is_the_set_of_those_who_have_not_left(signs: list[tuple[str, Query, bytes]]) -> None:
    """Without lost datagrams it equals the living receivers at each step."""
    interest = DomainInterest()
    living: set[tuple[Query, bytes]] = set()
    now = 0
    for kind, query, holder in signs:
        now += MILLISECOND
        if kind == "heard":
            living.add((query, holder))
            interest.heard(query, holder, now)
        else:
            living.discard((query, holder))
            interest.left(query, holder, now)
        assert set(interest.wanted) == {query for query, _ in living}
