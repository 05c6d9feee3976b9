"""What a source remembers of the NAKs that it answered."""

from stablecast.transports.reliable.nak_answers import NakAnswers, RecentAnswer


def test_what_was_never_asked_for_was_not_answered() -> None:
    assert NakAnswers(500).lately(3, 0) is RecentAnswer.NOTHING


def test_only_the_first_nak_within_the_ignore_interval_is_to_be_told() -> None:
    """T29: and the interval counts from the last retransmission."""
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


def test_what_waits_for_the_rate_limit_waits_once() -> None:
    answers = NakAnswers(500)
    answers.queue(3)
    assert answers.lately(3, 0) is RecentAnswer.QUEUED
    del answers.queued[3]
    answers.on_sent(3, 10)
    assert answers.lately(3, 20) is RecentAnswer.SENT
