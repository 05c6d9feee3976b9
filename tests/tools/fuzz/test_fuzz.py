"""The targets of `make fuzz`: each reads its samples, and what changes of them does to it."""

import random

import attrs
import pytest

from tools.fuzz.__main__ import MEMORY_BYTES, memory, mutated
from tools.fuzz.targets import TARGETS

INPUTS = 150
"""Changed samples of each target; the nightly run has a hundred million."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_takes_samples_and_refuses_changes_by_its_own_errors(name: str) -> None:
    target, chance = TARGETS[name], random.Random(name)
    samples = list(target.samples())
    assert any(target.accepts(sample) for sample in samples)
    for _ in range(INPUTS):
        target.accepts(mutated(chance.choice(samples), chance))


def test_another_error_is_a_finding() -> None:
    def read(data: bytes) -> None:
        raise KeyError(data)

    with pytest.raises(KeyError):
        attrs.evolve(TARGETS["control"], run=read).accepts(b"")


@pytest.mark.parametrize(("taken", "over"), [(MEMORY_BYTES // 2, False), (2 * MEMORY_BYTES, True)])
def test_a_file_that_takes_too_much_memory_is_found(taken: int, over: bool) -> None:
    share, _ = memory(attrs.evolve(TARGETS["trace"], run=lambda _: bytearray(taken)), [b"sample"], 2, seed=1)
    assert (share > 1) is over
