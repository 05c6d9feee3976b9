"""Hold a first-order transition system, and form the conditions under which its invariants are inductive.

A transition is enabled for parameters that fulfil its guards. Its updates define symbols anew over the state before;
all other symbols stay. A parameter is an element of a sort, or a relation: a set that something else chooses. So a
condition needs no second copy of the state:

    axioms and invariants and guards imply the invariant in which updated symbols are replaced by their definitions
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from stablecast.lab.proof.language import (
    BOOL,
    FALSE,
    TRUE,
    Apply,
    Choose,
    Compare,
    Connective,
    Definition,
    Quantify,
    Substitution,
    Symbol,
    Term,
    Variable,
    Vocabulary,
    negation,
    order,
    smt,
    symbols_of,
)

INITIAL: Final = "Init"
"""The name of the transition from nothing to the initial states."""
CONSEQUENCE: Final = "Inv"
"""The name of the conditions that a guarantee follows from the invariants."""
_HEAD = re.compile(r"(\w+)(?:\(([\w, ]+)\))?$")


@attrs.frozen
class Transition:
    """Hold a transition. The part of its name before a dot is that of an action of the TLA+ model.

    `lemmas` follow from the invariants and the guards, each also from those before it, and help the solvers.
    """

    name: str
    parameters: tuple[Symbol, ...]
    guards: tuple[Term, ...]
    updates: Mapping[str, Definition]
    lemmas: Mapping[str, Term]

    @property
    def action(self) -> str:
        """The name of the action in the model."""
        return self.name.split(".")[0]


@attrs.frozen
class Condition:
    """Hold a condition to discharge: `assumptions` and the negated `goal` must be contradictory.

    `narrow` are some of the assumptions. They often suffice, and are tried first. Empty: nothing is tried first.
    """

    transition: str
    invariant: str
    assumptions: tuple[Term, ...]
    goal: Term
    narrow: tuple[Term, ...] = ()

    @property
    def name(self) -> str:
        """The full name of the condition."""
        return f"{self.transition}/{self.invariant}"

    @property
    def formulas(self) -> tuple[Term, ...]:
        """The formulas that must be contradictory together."""
        return (*self.assumptions, negation(self.goal))


@attrs.frozen
class System:
    """Hold sorts and symbols, axioms, initial states, transitions and invariants, by name.

    `consequences` follow from the invariants, each also from those before it; the last ones are the guarantees.
    `proved` is a system whose conditions are discharged elsewhere: those that are conditions of this one, too, count.
    """

    name: str
    vocabulary: Vocabulary
    state: frozenset[str]
    axioms: Mapping[str, Term]
    initial: Mapping[str, Definition]
    transitions: tuple[Transition, ...]
    invariants: Mapping[str, Term]
    consequences: Mapping[str, Term]
    needs: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    proved: "System | None" = None

    def conditions(self, only: Sequence[str] = ()) -> Iterator[Condition]:
        """Yield every condition, of some transitions if `only` names any.

        A transition that updates no symbol of an invariant keeps it, so there is no condition for it.
        """
        known = frozenset[tuple[str, str]]() if self.proved is None else self.proved.shown(self)
        yield from (one for one in self._conditions(only) if (one.transition, one.invariant) not in known)

    def shown(self, larger: "System") -> frozenset[tuple[str, str]]:
        """Return which conditions of this system are those of a larger one, by transition and invariant.

        The larger one assumes no less, so each of its conditions with the same steps and the same goal follows.

        Raises:
            ValueError: it assumes less.
        """
        for mine, other in ((self.axioms, larger.axioms), (self.invariants, larger.invariants)):
            if not mine.items() <= other.items():
                raise ValueError(f"{larger.name} assumes less than {self.name}")
        there = {one.name: one for one in larger.transitions}
        alike = {one.name for one in self.transitions if one == there.get(one.name)}
        if self.initial.items() <= larger.initial.items():
            alike.add(INITIAL)
        claimed = self.consequences.items() & larger.consequences.items()
        return frozenset(
            (one.transition, one.invariant)
            for one in self.conditions()
            if one.transition in alike
            or (one.transition == CONSEQUENCE and one.invariant in {name for name, _ in claimed})
        )

    def _conditions(self, only: Sequence[str]) -> Iterator[Condition]:
        axioms = tuple(self.axioms.values())
        if not only or INITIAL in only:
            for name, invariant in self.invariants.items():
                yield Condition(INITIAL, name, axioms, Substitution(self.initial).apply(invariant))
        for transition in self.transitions:
            if not only or transition.name in only:
                yield from self._preserved(transition)
        known = (*axioms, *self.invariants.values())
        if not only or CONSEQUENCE in only:
            for name, consequence in self.consequences.items():
                yield Condition(CONSEQUENCE, name, known, consequence)
                known = (*known, consequence)

    def _preserved(self, transition: Transition) -> Iterator[Condition]:
        """Yield the lemmas of a transition, then that it preserves each invariant, with the lemmas assumed."""
        assumed = transition.guards
        for name, lemma in transition.lemmas.items():
            yield self._condition(transition, name, assumed, lemma)
            assumed = (*assumed, lemma)
        for name, invariant in self.invariants.items():
            if any(symbol.name in transition.updates for symbol in symbols_of(invariant)):
                goal = Substitution(transition.updates).apply(invariant)
                kept = self._condition(transition, name, assumed, goal)
                # Most invariants follow from themselves alone.
                yield (
                    kept
                    if f"{transition.name}/{name}" in self.needs
                    else attrs.evolve(kept, narrow=(invariant, *assumed))
                )

    def _condition(self, transition: Transition, name: str, assumed: tuple[Term, ...], goal: Term) -> Condition:
        needed = self.needs.get(f"{transition.name}/{name}", tuple(self.invariants))
        known = (self.invariants[one] for one in needed if one in self.invariants)
        return Condition(transition.name, name, (*self.axioms.values(), *known, *assumed), goal)

    def consistent(self) -> Condition:
        """Return a condition that must fail: axioms and invariants alone are not contradictory."""
        return Condition("axioms", "consistent", (*self.axioms.values(), *self.invariants.values()), FALSE)

    def without(self, *invariants: str) -> "System":
        kept = {name: one for name, one in self.invariants.items() if name not in invariants}
        return attrs.evolve(self, invariants=kept)


@attrs.define
class SystemText:
    """Collect a system as text, and read it.

    A head is a symbol with its variables, such as `counts(l1, s1)`; its value is a formula over the state before.
    """

    name: str
    letters: Mapping[str, str]
    ordered: frozenset[str]
    constants: Mapping[str, Symbol]
    variables: Mapping[str, Symbol]
    axioms: Mapping[str, str]
    invariants: dict[str, str] = attrs.field(factory=dict)
    consequences: dict[str, str] = attrs.field(factory=dict)
    needs: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    initial: dict[str, str] = attrs.field(factory=dict)
    transitions: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = attrs.field(factory=dict)
    lemmas: dict[str, dict[str, str]] = attrs.field(factory=dict)

    def read(self, proved: System | None = None) -> System:
        """Return the system, of which the conditions of `proved` are discharged elsewhere.

        Raises:
            ProofError: a text is malformed.
        """
        words = Vocabulary(self.letters, self.ordered, {**self.constants, **self.variables})
        return System(
            self.name,
            words,
            frozenset(self.variables),
            {name: words.read(text) for name, text in self.axioms.items()},
            dict(self._definition(words, head, text, {}) for head, text in self.initial.items()),
            tuple(self._transition(words, name) for name in self.transitions),
            {name: words.read(text) for name, text in self.invariants.items()},
            {name: words.read(text) for name, text in self.consequences.items()},
            self.needs,
            proved,
        )

    def _transition(self, words: Vocabulary, name: str) -> Transition:
        heads, guards, updates = self.transitions[name]
        parameters = {}
        for head in re.findall(r"\w+(?:\([\w, ]+\))?", heads):
            match = _HEAD.match(head)
            assert match is not None
            sorts = tuple(self.letters[one.strip()[0]] for one in match[2].split(",")) if match[2] else ()
            result = BOOL if match[2] else self.letters[match[1][0]]
            # The sign keeps a parameter apart from a bound variable of the same name.
            parameters[match[1]] = Symbol(f"${match[1]}", sorts, result)
        return Transition(
            name,
            tuple(parameters.values()),
            tuple(words.read(guard, parameters) for guard in guards),
            dict(self._definition(words, head, text, parameters) for head, text in updates.items()),
            {lemma: words.read(text, parameters) for lemma, text in self.lemmas.get(name, {}).items()},
        )

    def _definition(
        self, words: Vocabulary, head: str, text: str, parameters: Mapping[str, Symbol]
    ) -> tuple[str, Definition]:
        match = _HEAD.match(head)
        assert match is not None, head
        names = [one.strip() for one in match[2].split(",")] if match[2] else []
        variables = tuple(Variable(name, self.letters[name[0]]) for name in names)
        symbol = words.symbols[match[1]]
        assert symbol.arguments == tuple(one.sort for one in variables), head
        assert not parameters.keys() & {one.name for one in variables}, head
        if "if " in text:  # if FORMULA then TERM else TERM
            condition, yes, no = re.split(r"\bif\b|\bthen\b|\belse\b", text)[1:]
            chosen = Choose(*(words.read(part, parameters) for part in (condition, yes, no)))
            return symbol.name, Definition(variables, chosen)
        return symbol.name, Definition(variables, words.read(text, parameters))


def script(system: System, condition: Condition) -> str:
    """Return a condition as an SMT-LIB script: unsatisfiable if the condition holds."""
    used = {symbol.name: symbol for formula in condition.formulas for symbol in symbols_of(formula)}
    sorts = dict.fromkeys(system.vocabulary.letters.values())
    lines = ["(set-logic UF)", *(f"(declare-sort {sort} 0)" for sort in sorts)]
    for sort in sorted(system.vocabulary.ordered):
        lines += _order(sort)
    for name, symbol in sorted(used.items()):
        lines.append(f"(declare-fun {name} ({' '.join(symbol.arguments)}) {symbol.result})")
    lines += [f"(assert {smt(formula)})" for formula in condition.formulas if formula != TRUE]
    return "\n".join([*lines, "(check-sat)", ""])


def _order(sort: str) -> list[str]:
    """Declare a total order."""
    le = order(sort)
    return [
        f"(declare-fun {le} ({sort} {sort}) Bool)",
        f"(assert (forall ((a {sort})) ({le} a a)))",
        f"(assert (forall ((a {sort}) (b {sort}) (c {sort})) (=> (and ({le} a b) ({le} b c)) ({le} a c))))",
        f"(assert (forall ((a {sort}) (b {sort})) (=> (and ({le} a b) ({le} b a)) (= a b))))",
        f"(assert (forall ((a {sort}) (b {sort})) (or ({le} a b) ({le} b a))))",
    ]


__all__ = ["Apply", "Compare", "Condition", "Connective", "Quantify", "System", "SystemText", "Transition", "script"]
