"""Recent answers of a source to NAKs."""

from stablecast.transports.reliable.nak_answers import NakAnswers, RecentAnswer


def test_a_datagram_without_naks_has_no_recent_answer() -> None:
    assert NakAnswers(500).lately(3, 0) is RecentAnswer.NOTHING


def test_only_the_first_nak_in_the_ignore_interval_gets_an_ncf() -> None:
    """T29: the interval counts from the last retransmission."""
    answers = NakAnswers(500)
    answers.on_sent(3, 100)
    assert [answers.lately(3, now) for now in (101, 200, 599)] == [
        RecentAnswer.SENT,
        RecentAnswer.REFUSED,
        RecentAnswer.REFUSED,
    ]
    assert answers.lately(3, 600) is RecentAnswer.NOTHING
    assert (answers.sent, answers.refused) == ({}, {})


def test_a_second_retransmission_begins_another_interval() -> None:
    answers = NakAnswers(500)
    answers.on_sent(3, 0)
    answers.on_sent(4, 10)
    answers.on_sent(3, 500)
    assert answers.lately(4, 510) is RecentAnswer.NOTHING
    assert answers.lately(3, 999) is RecentAnswer.SENT


def test_a_retransmission_waits_for_the_rate_limit_once() -> None:
    answers = NakAnswers(500)
    answers.queue(3)
    assert answers.lately(3, 0) is RecentAnswer.QUEUED
    del answers.queued[3]
    answers.on_sent(3, 10)
    assert answers.lately(3, 20) is RecentAnswer.SENT
