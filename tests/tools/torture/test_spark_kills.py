"""The judge of runs with killed processes on Spark."""

import pytest

from tools.torture.spark_kills import Found, faults


@pytest.mark.parametrize(
    ("numbers", "holes", "wrong"),
    [
        ({1: [0, 1, 3], 2: [2]}, [], []),
        ({1: [0, 2, 1, 3]}, [], ["source 1 has 1 after 2"]),
        ({1: [0, 1, 2], 2: [2, 3]}, [], ["2 came 2 times"]),
        ({1: [0, 3]}, [], ["2 of 4 numbers are missing, first 1"]),
        ({1: [0, 1, 2, 3, 4]}, [], ["4 was never sent"]),
        ({1: [0, 1, 2, 3]}, ["a hole"], ["a hole"]),
    ],
)
def test_what_is_lost_repeated_or_out_of_order_is_found(
    numbers: dict[int, list[int]], holes: list[str], wrong: list[str]
) -> None:
    assert faults(Found(numbers, holes), 4) == wrong
