"""Evaluate formulas in finite structures, and perform transitions there.

A structure gives each sort a number of elements, 0 to size - 1, and each symbol a value: an element for a constant,
a set of tuples for a relation, and a set of tuples that end with the result for a function. Orders are those of the
elements. Formulas are compiled to Python, and results are cached by the values of the symbols that they mention.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from itertools import product
from typing import Any

import attrs

from stablecast.lab.proof.language import BOOL, Apply, Choose, Compare, Connective, Definition, Symbol, Term, symbols_of
from stablecast.lab.proof.language import Variable as Bound
from stablecast.lab.proof.system import System, Transition

Value = int | bool | frozenset[tuple[int, ...]]
"""The value of a symbol."""
Structure = tuple[Value, ...]
"""The values of the variables of a system, in the order of their names."""
Parameters = Mapping[str, Value]
"""The values of a transition's parameters by name, without the sign."""


@lru_cache(maxsize=200_000)
def _results(pairs: frozenset[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    return {pair[:-1]: pair[-1] for pair in pairs}


def _code(term: Term, sizes: Mapping[str, int]) -> str:
    """Return Python code for a term. Symbols are local variables, so their names lose the sign of parameters."""
    match term:
        case Bound():
            return f"v_{term.name}"
        case Apply():
            name = _local(term.symbol)
            if not term.arguments:
                return name
            inside = "(" + "".join(f"{_code(one, sizes)}, " for one in term.arguments) + ")"
            return f"({inside} in {name})" if term.symbol.result == BOOL else f"{name}[{inside}]"
        case Compare():
            operator = "==" if term.operator == "=" else term.operator
            return f"({_code(term.left, sizes)} {operator} {_code(term.right, sizes)})"
        case Connective("not", (inner,)):
            return f"(not {_code(inner, sizes)})"
        case Connective("=", (left, right)):
            return f"({_code(left, sizes)} == {_code(right, sizes)})"
        case Connective():
            empty = "True" if term.operator == "and" else "False"
            return "(" + (f" {term.operator} ".join(_code(one, sizes) for one in term.parts) or empty) + ")"
        case Choose():
            yes, condition, no = (_code(one, sizes) for one in (term.yes, term.condition, term.no))
            return f"({yes} if {condition} else {no})"
        case _:
            loops = " ".join(f"for v_{one.name} in range({sizes[one.sort]})" for one in term.variables)
            return f"{'all' if term.quantifier == 'all' else 'any'}({_code(term.body, sizes)} {loops})"


def _local(symbol: Symbol) -> str:
    return f"p_{symbol.name[1:]}" if symbol.name.startswith("$") else f"s_{symbol.name}"


@attrs.define
class Evaluator:
    """Evaluate a system over sorts of these sizes, with these values of its constants."""

    system: System
    sizes: Mapping[str, int]
    constants: Mapping[str, Value]
    names: tuple[str, ...] = ()
    _compiled: dict[Hashable, tuple[Callable[..., Any], tuple[Symbol, ...]]] = attrs.field(factory=dict)
    _known: dict[Hashable, Any] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.names = tuple(sorted(self.system.state))

    def value(self, structure: Structure, name: str) -> Any:
        """Return the value of a variable; that of a function as a dictionary."""
        value = structure[self.names.index(name)]
        symbol = self.system.vocabulary.symbols[name]
        return _results(value) if symbol.arguments and symbol.result != BOOL else value

    def initial(self) -> Structure:
        """Return the initial structure; variables without a definition begin with element 0."""
        nothing: dict[str, Value] = dict.fromkeys(self.names, 0)
        for name in self.names:
            definition = self.system.initial[name]
            if definition.value != Apply(self.system.vocabulary.symbols[name], ()):
                nothing[name] = self._defined(name, definition, (), {}, ("Init", name))
        return tuple(nothing[name] for name in self.names)

    def invariants(self, structure: Structure) -> list[str]:
        """Return the names of the axioms, invariants and consequences that do not hold."""
        system = self.system
        claims = {**system.axioms, **system.invariants, **system.consequences}
        return [name for name, claim in claims.items() if not self._holds(("claim", name), claim, structure, {})]

    def enabled(self, transition: Transition, structure: Structure, parameters: Parameters) -> str | None:
        """Return None if a transition is enabled, or else the first guard that does not hold, as its number."""
        for number, guard in enumerate(transition.guards):
            if not self._holds((transition.name, number), guard, structure, parameters):
                return f"guard {number + 1} of {transition.name}"
        return None

    def perform(self, transition: Transition, structure: Structure, parameters: Parameters) -> Structure:
        """Return the structure after an enabled transition."""
        values = dict(zip(self.names, structure, strict=True))
        for name, definition in transition.updates.items():
            key = (transition.name, name)
            values[name] = self._defined(name, definition, structure, parameters, key)
        return tuple(values[name] for name in self.names)

    def _holds(self, key: Hashable, formula: Term, structure: Structure, parameters: Parameters) -> bool:
        call, used = self._call(key, lambda: (_code(formula, self.sizes), formula))
        return bool(self._cached(key, call, used, structure, parameters))

    def _defined(
        self, name: str, definition: Definition, structure: Structure, parameters: Parameters, key: Hashable
    ) -> Value:
        symbol = self.system.vocabulary.symbols[name]

        def text() -> tuple[str, Term]:
            value = _code(definition.value, self.sizes)
            if not definition.variables:
                return value, definition.value
            loops = " ".join(f"for v_{one.name} in range({self.sizes[one.sort]})" for one in definition.variables)
            row = "".join(f"v_{one.name}, " for one in definition.variables)
            if symbol.result == BOOL:
                return f"frozenset([({row}) {loops} if {value}])", definition.value
            return f"frozenset([({row}{value}) {loops}])", definition.value

        call, used = self._call(key, text)
        value: Value = self._cached(key, call, used, structure, parameters)
        return value

    def _call(
        self, key: Hashable, text: Callable[[], tuple[str, Term]]
    ) -> tuple[Callable[..., Any], tuple[Symbol, ...]]:
        known = self._compiled.get(key)
        if known is None:
            code, term = text()
            used = tuple(sorted(set(symbols_of(term)), key=lambda one: one.name))
            call = eval(f"lambda {', '.join(map(_local, used))}: {code}")  # noqa: S307 - the code is made here
            known = self._compiled[key] = (call, used)
        return known

    def _cached(
        self,
        key: Hashable,
        call: Callable[..., Any],
        used: tuple[Symbol, ...],
        structure: Structure,
        parameters: Parameters,
    ) -> Any:
        values = tuple(self._raw(symbol, structure, parameters) for symbol in used)
        place = (key, values)
        if place not in self._known:
            self._known[place] = call(*(_shown(one, value) for one, value in zip(used, values, strict=True)))
        return self._known[place]

    def _raw(self, symbol: Symbol, structure: Structure, parameters: Parameters) -> Value:
        if symbol.name.startswith("$"):
            return parameters[symbol.name[1:]]
        if symbol.name in self.constants:
            return self.constants[symbol.name]
        return structure[self.names.index(symbol.name)]


def _shown(symbol: Symbol, value: Value) -> Any:
    return _results(value) if symbol.arguments and symbol.result != BOOL else value


def subsets(elements: Iterable[int]) -> Iterable[frozenset[tuple[int, ...]]]:
    """Yield every set of elements, as a relation of one argument."""
    known = list(elements)
    for chosen in product((False, True), repeat=len(known)):
        yield frozenset((one,) for one, taken in zip(known, chosen, strict=True) if taken)
