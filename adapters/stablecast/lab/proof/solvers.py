"""Discharge conditions by z3 and cvc5, which read the same SMT-LIB script.

Both are optional packages, so they are imported here when the first condition is discharged.
"""

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any, Final

import attrs

from stablecast.lab.proof.errors import ProofError

LIMIT_MS: Final = 10_000
"""Time that a solver may take for one condition (ms)."""


class SolverAnswer(StrEnum):
    HOLDS = "holds"
    FAILS = "fails"
    UNKNOWN = "unknown"


_ANSWERS: Final = {"unsat": SolverAnswer.HOLDS, "sat": SolverAnswer.FAILS}


@attrs.frozen
class SolverResult:
    """Hold a solver's answer and its time (s)."""

    answer: SolverAnswer
    seconds: float


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ProofError(f"{name} is missing: install stablecast[prove]") from error


def z3(text: str) -> SolverAnswer:
    """Return the answer of z3 to a script.

    Each script has a context of its own. In a shared one the search depends on all scripts before: the same condition
    took 0.1 s, or more than the limit.
    """
    package = _package("z3")
    solver = package.Solver(ctx=package.Context())
    solver.set("timeout", LIMIT_MS)
    solver.from_string(text)
    return _ANSWERS.get(str(solver.check()), SolverAnswer.UNKNOWN)


def cvc5(text: str) -> SolverAnswer:
    package = _package("cvc5")
    manager = package.TermManager()
    solver = package.Solver(manager)
    solver.setOption("tlimit-per", str(LIMIT_MS))
    solver.setOption("finite-model-find", "true")
    parser = package.InputParser(solver, package.SymbolManager(manager))
    parser.setStringInput(package.InputLanguage.SMT_LIB_2_6, text, "condition")
    said = ""
    while True:
        command = parser.nextCommand()
        if command.isNull():
            return _ANSWERS.get(said, SolverAnswer.UNKNOWN)
        said = command.invoke(solver, parser.getSymbolManager()).strip() or said


SOLVERS: Final[Mapping[str, Callable[[str], SolverAnswer]]] = {"z3": z3, "cvc5": cvc5}
"""The solvers by name."""


def model(text: str) -> str:
    """Return the model that z3 finds for a script without functions, as definitions of SMT-LIB."""
    package = _package("z3")
    solver = package.Solver()
    solver.from_string(text)
    solver.check()
    return str(solver.model().sexpr())


def discharge(text: str, narrow: str = "") -> dict[str, SolverResult]:
    """Return the result of each solver for a script.

    `narrow` is a script of fewer assumptions. If both solvers say that it holds, then the whole one holds, too.
    """
    if narrow:
        # cvc5 finds a finite counterexample at once where z3 may search until the limit.
        first = _timed(cvc5, narrow)
        second = _timed(z3, narrow) if first.answer is SolverAnswer.HOLDS else first
        if second.answer is SolverAnswer.HOLDS:
            return {"z3": second, "cvc5": first}
    return {name: _timed(solve, text) for name, solve in SOLVERS.items()}


def _timed(solve: Callable[[str], SolverAnswer], text: str) -> SolverResult:
    began = time.monotonic()
    answer = solve(text)
    return SolverResult(answer, time.monotonic() - began)
