"""Faults are planted by the tests of the models; what became of them is told."""

from pathlib import Path

import pytest

from stablecast.lab.model import mutants
from stablecast.lab.model.errors import ModelError

FAULTS = """
import pytest

@pytest.mark.parametrize("name", ["noticed", "overlooked"])
def test_a_fault_is_found(name):
    assert name == "noticed"

def test_something_else():
    raise AssertionError
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A checkout with two faults, of which one is found."""
    tests = tmp_path / "tests" / "models"
    tests.mkdir(parents=True)
    (tests / "test_planted.py").write_text(FAULTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = thorough: slow\n", encoding="utf-8")
    return tmp_path / "tla"


def test_survivors_are_named(models: Path) -> None:
    result = mutants.run(models)
    assert result == mutants.Result(("test_a_fault_is_found[noticed]",), ("test_a_fault_is_found[overlooked]",))
    assert result.rate == 50


def test_some_can_be_chosen(models: Path) -> None:
    assert mutants.run(models, "noticed").rate == 100


def test_what_names_nothing_plants_nothing(models: Path) -> None:
    with pytest.raises(ModelError, match="no fault was planted"):
        mutants.run(models, "unheard-of")


def test_outside_of_a_checkout_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="run this in a checkout"):
        mutants.run(tmp_path / "tla")
