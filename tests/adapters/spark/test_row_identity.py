"""Which rows a sink writes when a batch is repeated: the rules, and a model of driver, tasks and zombies."""

from collections import Counter

import pytest

from stablecast.spark.row_identity import (
    RowChoice,
    RowMark,
    Seen,
    SinkError,
    content_of,
    key_of,
    lanes_to_take,
    missing_rows,
)
from tests.adapters.spark.sink_model import Model, State

BOUNDS = {
    "distinct rows": ("ab", (["ab"], ["a", "b"]), 2),
    "equal rows": ("aa", (["aa"], ["a", "a"]), 2),
    "three attempts": ("a", (["a"], ["", "a"]), 3),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_each_row_is_written_once_in_any_division(name: str) -> None:
    """A driver dies at any moment, its tasks go on, and the next one divides the batch in any way."""
    ends = Model(*BOUNDS[name]).explore()
    assert ends["once"] > 20
    assert set(+ends) == {"once", "states"}, ends


class TakesNothing(Model):
    """Tasks that do not take the lanes of earlier attempts."""

    def to_take(self, state: State, before: dict[int, Seen], own: int) -> set[int]:
        return set()


class SendsNothing(Model):
    """A driver that leaves missing what the tasks left out."""

    def missing(self, withheld: list[Counter[str]], others: Counter[str]) -> Counter[str]:
        super().missing(withheld, others)
        return Counter()


def test_the_model_finds_what_each_step_is_for() -> None:
    assert TakesNothing("ab", (["ab"], ["a", "b"])).explore()["a message after the commit"]
    assert SendsNothing("aa", (["aa"], ["a", "a"])).explore()["lost"]


def test_a_task_that_begins_after_its_attempt_is_over_is_the_bound() -> None:
    """Almost always it is refused; if it stalls until the next attempt has committed, its rows come twice."""
    ends = Model("a", (["a"], ["", "a"]), 2, late=True).explore()
    assert ends["refused by a task"]
    assert ends["refused by the driver"]
    assert ends["a message after the commit"]
    assert not ends["lost"]
    assert not ends["twice"]


def marks(rows: str, epoch: str = "old") -> list[RowMark]:
    return [RowMark(3, place, epoch, row) for place, row in enumerate(rows)]


def test_rows_of_other_attempts_are_left_out_and_reported() -> None:
    choice = RowChoice("batch 3")
    for mark in marks("aab"):
        choice.add(mark, own=False)
    assert [choice.sends(row) for row in "abca"] == [False, False, True, False]
    assert (choice.withheld, choice.sent) == (Counter("aab"), 1)


def test_rows_of_an_earlier_task_of_the_attempt_are_left_out_as_often_as_it_sent_them() -> None:
    choice = RowChoice("batch 3")
    for mark in marks("ab", "new"):
        choice.add(mark, own=True)
    assert [choice.sends(row) for row in "aac"] == [False, True, True]
    assert (choice.repeated, choice.withheld) == (1, Counter())
    with pytest.raises(SinkError, match="1 rows that an earlier task of batch 3 sent did not come again"):
        choice.end()
    assert not choice.sends("b")
    choice.end()


def test_nothing_new_comes_after_a_later_batch() -> None:
    choice = RowChoice("batch 3", later=4)
    choice.add(marks("a")[0], own=False)
    assert not choice.sends("a")
    with pytest.raises(SinkError, match="batch 4 of it is there already"):
        choice.sends("b")


def test_an_attempt_that_writes_now_is_refused() -> None:
    seen = Seen(life=5, stop=10)
    assert [seen.has(life, number) for life, number in ((4, 9), (5, 10), (6, 10))] == [True, True, False]
    with pytest.raises(SinkError, match="another attempt writes batch 3 at this time"):
        RowChoice("batch 3").add(marks("a")[0], own=False, before=False)


def test_lanes_that_nobody_registered_since_the_plan_are_taken() -> None:
    seen = {0: Seen(1, 0), 1: Seen(2, 5), 2: Seen(3, 0)}
    assert lanes_to_take({0: 1, 1: 2, 2: 8, 3: 9}, seen, own=0) == {1}


def test_the_driver_sends_equal_rows_that_are_missing_and_refuses_what_is_too_much() -> None:
    assert missing_rows("batch 3", [Counter("ab"), Counter("aa")], Counter("aab"), keyed=False) == Counter("a")
    assert not missing_rows("batch 3", [Counter("ab")], Counter("ab"), keyed=True)
    with pytest.raises(SinkError, match="the topic has 2 messages of batch 3 that its rows do not account for"):
        missing_rows("batch 3", [Counter("ab")], Counter("abbc"), keyed=False)
    with pytest.raises(SinkError, match="1 rows of batch 3 have the key of another row"):
        missing_rows("batch 3", [Counter("a"), Counter("a")], Counter("a"), keyed=True)


def test_a_mark_is_read_as_it_was_written() -> None:
    mark = RowMark(12, 7, "epoch-_", "digest-_")
    assert RowMark.of(str(mark), "a lane") == mark
    for text in ("", "1", "a:b", "1:2:3", "1:b", "1:2:3:4:5"):
        with pytest.raises(SinkError, match="a lane has messages of another sender"):
            RowMark.of(text, "a lane")
    with pytest.raises(SinkError, match="begun by a release that noted no identity"):
        RowChoice("batch 3").add(RowMark.of("3:7", "a lane"), own=False)


def test_identities_differ_where_rows_do() -> None:
    rows: list[tuple[bytes, dict[str, object]]]
    rows = [(b"a", {}), (b"b", {}), (b"a", {"x": 1}), (b"a", {"x": "1"}), (b'a{"x": 1}', {}), (b"", {})]
    assert len({content_of(*row) for row in rows}) == len(rows)
    assert content_of(b"a", {"x": 1, "y": 2}) == content_of(b"a", {"y": 2, "x": 1})
    keys = [(1, "a"), (1, "b"), ("1", "a"), (1, None), (11, "a"), (1,)]
    assert len({key_of(key) for key in keys}) == len(keys)
