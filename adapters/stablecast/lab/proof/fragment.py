"""Check that a condition lies in the decidable fragment: its quantifier alternations are stratified.

After negations are moved inward, every `some x` below `all y` makes an element of the sort of x from one of the sort of
y. Every function makes an element of its result from those of its arguments. If this graph of sorts has no cycle, then
finitely many elements can be made from those of a counterexample, and both solvers decide the condition.
"""

from collections.abc import Iterable, Iterator

from stablecast.lab.proof.errors import ProofError
from stablecast.lab.proof.language import BOOL, Apply, Choose, Connective, Quantify, Term, parts, symbols_of

Edge = tuple[str, str]
"""A sort, and another sort of which its elements make elements."""


def edges(formula: Term) -> frozenset[Edge]:
    """Return the edges of the graph of sorts of an asserted formula."""
    return frozenset([*_alternations(formula, True, ()), *_functions(formula)])


def check(formulas: Iterable[Term], name: str) -> frozenset[Edge]:
    """Return the edges of formulas that are asserted together.

    Raises:
        ProofError: they have a cycle.
    """
    found = frozenset(edge for formula in formulas for edge in edges(formula))
    cycle = _cycle(found)
    if cycle:
        raise ProofError(f"{name} lies outside the decidable fragment: {' -> '.join(cycle)}")
    return found


def _alternations(formula: Term, positive: bool, above: tuple[str, ...]) -> Iterator[Edge]:
    match formula:
        case Quantify():
            universal = (formula.quantifier == "all") == positive
            sorts = tuple(one.sort for one in formula.variables)
            if not universal:
                yield from ((outer, sort) for outer in above for sort in sorts)
            yield from _alternations(formula.body, positive, (*above, *sorts) if universal else above)
        case Connective("not", (inner,)):
            yield from _alternations(inner, not positive, above)
        case Connective("=", sides):
            for side in sides:  # An equivalence asserts each side and its negation.
                yield from _alternations(side, True, above)
                yield from _alternations(side, False, above)
        case Choose():
            yield from _alternations(formula.condition, True, above)
            yield from _alternations(formula.condition, False, above)
            yield from _alternations(formula.yes, positive, above)
            yield from _alternations(formula.no, positive, above)
        case _:
            for part in parts(formula):
                yield from _alternations(part, positive, above)


def _functions(formula: Term) -> Iterator[Edge]:
    for symbol in symbols_of(formula):
        if symbol.result != BOOL:
            yield from ((sort, symbol.result) for sort in symbol.arguments)


def _cycle(found: frozenset[Edge]) -> tuple[str, ...]:
    following: dict[str, list[str]] = {}
    for source, target in sorted(found):
        following.setdefault(source, []).append(target)
    done: set[str] = set()

    def visit(sort: str, path: tuple[str, ...]) -> tuple[str, ...]:
        if sort in path:
            return (*path[path.index(sort) :], sort)
        if sort not in done:
            for target in following.get(sort, []):
                cycle = visit(target, (*path, sort))
                if cycle:
                    return cycle
            done.add(sort)
        return ()

    for sort in following:
        cycle = visit(sort, ())
        if cycle:
            return cycle
    return ()


__all__ = ["Apply", "check", "edges"]
