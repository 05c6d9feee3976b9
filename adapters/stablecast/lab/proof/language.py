"""Read first-order formulas, substitute in them, and print them for solvers (SMT-LIB 2).

    all s, n. acked(l,s,n) -> some k. in_k(s,k) & content(s,n,l)

The first letter of a variable determines its sort (`Vocabulary`). `!` binds most tightly, then the comparisons, `&`,
`|`, `->` and `<->`. A quantifier reaches as far to the right as possible. Sorts with an order have `<` and `<=`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from stablecast.lab.proof.errors import ProofError

BOOL: Final = "Bool"
"""The sort of formulas."""

_TOKEN = re.compile(r"\s*(<->|->|<=|!=|[()!&|,.=<]|[a-z]\w*)")
_WORDS: Final = frozenset({"all", "some", "true", "false"})


@attrs.frozen
class Symbol:
    """Name a relation, function or constant, with the sorts of its arguments and its result."""

    name: str
    arguments: tuple[str, ...]
    result: str = BOOL


@attrs.frozen
class Variable:
    """Name a bound variable or a parameter."""

    name: str
    sort: str


@attrs.frozen
class Apply:
    """Apply a symbol to as many arguments as it has."""

    symbol: Symbol
    arguments: "tuple[Term, ...]"


@attrs.frozen
class Compare:
    """Compare two terms of one sort: `=`, `<` or `<=`."""

    operator: str
    left: "Term"
    right: "Term"


@attrs.frozen
class Connective:
    """Connective formulas: `not` (one), `and`, `or` (any number), `=` (two)."""

    operator: str
    parts: "tuple[Term, ...]"


@attrs.frozen
class Choose:
    """Choose one of two terms by a formula."""

    condition: "Term"
    yes: "Term"
    no: "Term"


@attrs.frozen
class Quantify:
    """Quantify a formula: `all` or `some`."""

    quantifier: str
    variables: tuple[Variable, ...]
    body: "Term"


Term = Variable | Apply | Compare | Connective | Choose | Quantify
"""A term; a formula is a term of sort Bool."""

TRUE: Final = Connective("and", ())
FALSE: Final = Connective("or", ())


def negation(formula: Term) -> Term:
    return Connective("not", (formula,))


@attrs.frozen
class Vocabulary:
    """Hold the sorts by the first letter of their variables, those that have an order, and the symbols by name."""

    letters: Mapping[str, str]
    ordered: frozenset[str]
    symbols: Mapping[str, Symbol]

    def read(self, text: str, parameters: Mapping[str, Symbol] | None = None) -> Term:
        """Return the formula or term of a text; `parameters` are further symbols.

        Raises:
            ProofError: the text is malformed or uses an unknown name.
        """
        return _Reader(self, {**self.symbols, **(parameters or {})}, text).whole()


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ProofError(f"cannot read formula at: {text[at : at + 30]!r}")
        tokens.append(match[1])
        at = match.end()
    return tokens


class _Reader:
    """Read one text by recursive descent."""

    def __init__(self, vocabulary: Vocabulary, symbols: Mapping[str, Symbol], text: str) -> None:
        self._letters = vocabulary.letters
        self._symbols = symbols
        self._text = text
        self._tokens = [*_tokens(text), ""]
        self._at = 0

    def whole(self) -> Term:
        term = self._formula()
        if self._next():
            raise self._error("unexpected")
        return term

    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self, *wanted: str) -> str:
        word = self._tokens[self._at]
        if wanted and word not in wanted:
            raise self._error(f"expected {' or '.join(wanted)} before")
        if not word:
            raise self._error("the text ends at")
        self._at += 1
        return word

    def _error(self, what: str) -> ProofError:
        return ProofError(f"{what} '{self._next()}' in: {self._text.strip()}")

    def _formula(self) -> Term:
        left = self._implication()
        while self._next() == "<->":
            self._take()
            left = Connective("=", (left, self._implication()))
        return left

    def _implication(self) -> Term:
        left = self._several("|")
        if self._next() == "->":
            self._take()
            return Connective("or", (negation(left), self._implication()))
        return left

    def _several(self, operator: str) -> Term:
        found = [self._below(operator)]
        while self._next() == operator:
            self._take()
            found.append(self._below(operator))
        return found[0] if len(found) == 1 else Connective("or" if operator == "|" else "and", tuple(found))

    def _below(self, operator: str) -> Term:
        return self._several("&") if operator == "|" else self._single()

    def _single(self) -> Term:
        word = self._next()
        if word == "!":
            self._take()
            return negation(self._single())
        if word in ("all", "some"):
            return self._quantified()
        left = self._primary()
        operator = self._next()
        if operator in ("=", "!=", "<", "<="):
            self._take()
            compared = Compare(operator.removeprefix("!"), left, self._primary())
            return negation(compared) if operator == "!=" else compared
        return left

    def _quantified(self) -> Term:
        quantifier = self._take()
        variables = [self._variable(self._take())]
        while self._next() == ",":
            self._take()
            variables.append(self._variable(self._take()))
        self._take(".")
        return Quantify(quantifier, tuple(variables), self._formula())

    def _primary(self) -> Term:
        word = self._take()
        if word == "(":
            inside = self._formula()
            self._take(")")
            return inside
        if word in ("true", "false"):
            return TRUE if word == "true" else FALSE
        symbol = self._symbols.get(word)
        if symbol is None:
            return self._variable(word)
        arguments: list[Term] = []
        if self._next() == "(":
            self._take()
            arguments.append(self._formula())
            while self._take(",", ")") == ",":
                arguments.append(self._formula())
        if len(arguments) != len(symbol.arguments):
            raise self._error(f"{word} has {len(symbol.arguments)} arguments before")
        return Apply(symbol, tuple(arguments))

    def _variable(self, name: str) -> Variable:
        if name in _WORDS or name[:1] not in self._letters or name in self._symbols:
            raise self._error(f"'{name}' is no variable before")
        return Variable(name, self._letters[name[0]])


def parts(term: Term) -> tuple[Term, ...]:
    """Return the direct parts of a term."""
    match term:
        case Apply():
            return term.arguments
        case Compare():
            return (term.left, term.right)
        case Connective():
            return term.parts
        case Choose():
            return (term.condition, term.yes, term.no)
        case Quantify():
            return (term.body,)
        case _:
            return ()


def symbols_of(term: Term) -> Iterator[Symbol]:
    """Yield the symbols of a term, some of them repeatedly."""
    if isinstance(term, Apply):
        yield term.symbol
    for part in parts(term):
        yield from symbols_of(part)


@attrs.frozen
class Definition:
    """Define a symbol anew after a transition: its variables, and its value over the state before."""

    variables: tuple[Variable, ...]
    value: Term


@attrs.define
class Substitution:
    """Replace symbols by definitions, and variables by terms. Bound variables are renamed."""

    definitions: Mapping[str, Definition]
    count: int = 0

    def apply(self, term: Term, bound: Mapping[Variable, Term] | None = None) -> Term:
        """Return the term with its symbols as defined."""
        known = bound or {}
        match term:
            case Variable():
                return known.get(term, term)
            case Apply():
                arguments = tuple(self.apply(one, known) for one in term.arguments)
                defined = self.definitions.get(term.symbol.name)
                if defined is None:
                    return Apply(term.symbol, arguments)
                return Substitution({}, self.count).apply(
                    defined.value, dict(zip(defined.variables, arguments, strict=True))
                )
            case Compare():
                return Compare(term.operator, self.apply(term.left, known), self.apply(term.right, known))
            case Connective():
                return Connective(term.operator, tuple(self.apply(one, known) for one in term.parts))
            case Choose():
                return Choose(*(self.apply(one, known) for one in (term.condition, term.yes, term.no)))
            case Quantify():
                return self._quantified(term, known)

    def _quantified(self, term: Quantify, known: Mapping[Variable, Term]) -> Term:
        free = {variable.name for value in known.values() for variable in variables_of(value)}
        renamed, inner = [], dict(known)
        for variable in term.variables:
            name = variable.name
            while name in free:
                self.count += 1
                name = f"{variable.name}_{self.count}"
            fresh = Variable(name, variable.sort)
            renamed.append(fresh)
            inner[variable] = fresh
        return Quantify(term.quantifier, tuple(renamed), self.apply(term.body, inner))


def variables_of(term: Term) -> Iterator[Variable]:
    """Yield the variables of a term, bound ones too."""
    if isinstance(term, Variable):
        yield term
    if isinstance(term, Quantify):
        yield from term.variables
    for part in parts(term):
        yield from variables_of(part)


def order(sort: str) -> str:
    """Return the name of the relation `less or equal` of a sort for solvers."""
    return f"{sort}.le"


def smt(term: Term) -> str:
    match term:
        case Variable():
            return term.name
        case Apply():
            inside = " ".join(smt(one) for one in term.arguments)
            return f"({term.symbol.name} {inside})" if inside else term.symbol.name
        case Compare():
            return _compared(term)
        case Connective() if not term.parts:
            return "true" if term.operator == "and" else "false"
        case Connective():
            return f"({term.operator} {' '.join(smt(one) for one in term.parts)})"
        case Choose():
            return f"(ite {smt(term.condition)} {smt(term.yes)} {smt(term.no)})"
        case Quantify():
            bound = " ".join(f"({one.name} {one.sort})" for one in term.variables)
            return f"({'forall' if term.quantifier == 'all' else 'exists'} ({bound}) {smt(term.body)})"


def sort_of(term: Term) -> str:
    match term:
        case Variable():
            return term.sort
        case Apply():
            return term.symbol.result
        case Choose():
            return sort_of(term.yes)
        case _:
            return BOOL


def _compared(term: Compare) -> str:
    left, right = smt(term.left), smt(term.right)
    if term.operator == "=":
        return f"(= {left} {right})"
    le = order(sort_of(term.left))
    return f"({le} {left} {right})" if term.operator == "<=" else f"(not ({le} {right} {left}))"
