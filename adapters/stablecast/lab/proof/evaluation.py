"""Evaluate formulas in finite structures, and perform transitions there.

A structure gives each sort a number of elements, 0 to size - 1, and each symbol a value: an element for a constant,
a set of tuples for a relation, and a set of tuples that end with the result for a function. Orders are those of the
elements. Formulas are compiled to Python, and results are cached by the values of the symbols that they mention.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
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


@attrs.frozen
class _Expression:
    """Compute a value from some symbols, and remember it by their values.

    Attributes:
        pick: Returns the values of its variables in a structure.
        parameters: The names of its parameters, which follow the variables.
        functions: Whether the code sees a symbol as a dictionary, symbol by symbol.
        code: Takes the values.
        known: The results.
    """

    pick: Callable[[Structure], tuple[Value, ...]]
    parameters: tuple[str, ...]
    functions: tuple[bool, ...]
    code: Callable[..., Any]
    known: dict[tuple[Value, ...], Any] = attrs.field(factory=dict)

    def value(self, structure: Structure, parameters: Parameters) -> Any:
        values = self.pick(structure)
        if self.parameters:
            values += tuple(parameters[name] for name in self.parameters)
        if values not in self.known:
            shown = (_results(one) if function else one for one, function in zip(values, self.functions, strict=True))
            self.known[values] = self.code(*shown)
        return self.known[values]


def _picker(places: Sequence[int]) -> Callable[[Structure], tuple[Value, ...]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda structure: tuple(structure[place] for place in places)


@attrs.define
class Evaluator:
    """Evaluate a system over sorts of these sizes, with these values of its constants."""

    system: System
    sizes: Mapping[str, int]
    constants: Mapping[str, Value]
    names: tuple[str, ...] = attrs.field(init=False)
    transitions: Mapping[str, Transition] = attrs.field(init=False)
    _places: dict[str, int] = attrs.field(init=False)
    _functions: frozenset[str] = attrs.field(init=False)
    _expressions: dict[Hashable, _Expression] = attrs.field(init=False, factory=dict)
    _claims: list[_Expression] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.names = tuple(sorted(self.system.state))
        self.transitions = {one.name: one for one in self.system.transitions}
        self._places = {name: place for place, name in enumerate(self.names)}
        symbols = self.system.vocabulary.symbols
        self._functions = frozenset(name for name in self.names if _is_function(symbols[name]))
        # Claims about the same symbols are looked up together: there are more than a hundred in each structure.
        system, together = self.system, dict[tuple[Symbol, ...], dict[str, Term]]()
        for name, claim in {**system.axioms, **system.invariants, **system.consequences}.items():
            together.setdefault(_symbols(claim), {})[name] = claim
        self._claims = [self._broken(claims, used) for used, claims in together.items()]

    def value(self, structure: Structure, name: str) -> Any:
        """Return the value of a variable; that of a function as a dictionary."""
        value = structure[self._places[name]]
        return _results(value) if name in self._functions else value

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
        return [name for claims in self._claims for name in claims.value(structure, {})]

    def enabled(self, transition: Transition, structure: Structure, parameters: Parameters) -> str | None:
        """Return None if a transition is enabled, or else the first guard that does not hold, as its number."""
        for number, guard in enumerate(transition.guards):
            key = (transition.name, number)
            expression = self._expressions.get(key)
            if expression is None:
                expression = self._expressions[key] = self._expression(_code(guard, self.sizes), _symbols(guard))
            if not expression.value(structure, parameters):
                return f"guard {number + 1} of {transition.name}"
        return None

    def perform(self, transition: Transition, structure: Structure, parameters: Parameters) -> Structure:
        """Return the structure after an enabled transition."""
        after = list(structure)
        for name, definition in transition.updates.items():
            after[self._places[name]] = self._defined(name, definition, structure, parameters, (transition.name, name))
        return tuple(after)

    def _defined(
        self, name: str, definition: Definition, structure: Structure, parameters: Parameters, key: Hashable
    ) -> Value:
        expression = self._expressions.get(key)
        if expression is None:
            code = self._code_of(definition, self.system.vocabulary.symbols[name])
            expression = self._expressions[key] = self._expression(code, _symbols(definition.value))
        value: Value = expression.value(structure, parameters)
        return value

    def _broken(self, claims: Mapping[str, Term], used: tuple[Symbol, ...]) -> _Expression:
        """Return the expression of the names of claims that do not hold."""
        pairs = "".join(f"({name!r}, {_code(claim, self.sizes)}), " for name, claim in claims.items())
        return self._expression(f"[name for name, holds in ({pairs}) if not holds]", used)

    def _code_of(self, definition: Definition, symbol: Symbol) -> str:
        value = _code(definition.value, self.sizes)
        if not definition.variables:
            return value
        loops = " ".join(f"for v_{one.name} in range({self.sizes[one.sort]})" for one in definition.variables)
        row = "".join(f"v_{one.name}, " for one in definition.variables)
        if symbol.result == BOOL:
            return f"frozenset([({row}) {loops} if {value}])"
        return f"frozenset([({row}{value}) {loops}])"

    def _expression(self, code: str, used: tuple[Symbol, ...]) -> _Expression:
        fixed = [one for one in used if one.name in self.constants]
        variables = [one for one in used if one.name in self._places]
        parameters = [one for one in used if one.name.startswith("$")]
        constants = {_local(one): _shown(one, self.constants[one.name]) for one in fixed}
        call = eval(f"lambda {', '.join(map(_local, variables + parameters))}: {code}", constants)  # noqa: S307 - made here
        return _Expression(
            _picker([self._places[one.name] for one in variables]),
            tuple(one.name[1:] for one in parameters),
            tuple(map(_is_function, variables + parameters)),
            call,
        )


def _symbols(term: Term) -> tuple[Symbol, ...]:
    return tuple(sorted(set(symbols_of(term)), key=lambda one: one.name))


def _is_function(symbol: Symbol) -> bool:
    return bool(symbol.arguments) and symbol.result != BOOL


def _shown(symbol: Symbol, value: Value) -> Any:
    return _results(value) if _is_function(symbol) else value
