"""The prompt of `stablecast trace open`: its commands and their output."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs
import msgspec

from stablecast.core.machine.units import SECOND
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.frames import ROLES
from stablecast.evidence.trace.tools.message_history import why
from stablecast.evidence.trace.tools.records import RecordFilter, kinds, sentence, shown
from stablecast.evidence.trace.tools.travel import Trace, open_all, prepare

HELP = """\
  traces            the endpoints, by number
  use N             look at endpoint N
  next [N], n       N records forward (1); an empty line repeats it
  back [N], b       N records back (1)
  goto RECORD       to a record
  time SECONDS      to the last record not later than this
  find KIND         to the next record with such an input, effect, message or event
  state [FIELD]     the machine's state after this record, or one field of it (config.topic)
  why NUMBER        what became of the message with this sequence number, by all traces
  help, quit, q"""


class WrongWordError(TraceError):
    """A command is unknown or has a wrong argument."""


@attrs.define
class TravelSession:
    """The current place in each trace; `run` reads lines and prints lines."""

    paths: list[Path]
    traces: list[Trace]
    using: int = 0
    at: list[int] = attrs.field(factory=list)
    over: bool = False
    last: str = "next"

    @classmethod
    def open(cls, paths: list[Path]) -> "TravelSession":
        """Open all traces, each at its first record. Raise TraceError."""
        traces = open_all(paths)
        return cls(paths, traces, at=[trace.first for trace in traces])

    def prepare(self) -> None:
        """Do now the slow part of the first state of each role, before somebody waits for it."""
        for role in {trace.role for trace in self.traces}:
            prepare(ROLES[role])

    @property
    def trace(self) -> Trace:
        """Return the current trace."""
        return self.traces[self.using]

    def run(self, lines: Iterable[str], say: Callable[[str], None]) -> int:
        """Run commands until `quit` or the end; return the number of wrong ones."""
        wrong = 0
        for line in lines:
            try:
                for told in self.do(line.strip() or self.last):
                    say(told)
            except TraceError as error:
                wrong += 1
                say(str(error))
            if self.over:
                break
        return wrong

    def do(self, line: str) -> Iterator[str]:
        """Run one command. Raise TraceError."""
        word, *rest = line.split()
        argument = rest[0] if rest else ""
        if word in ("next", "n", "back", "b", "find"):
            self.last = line
        match word:
            case "traces" | "use" | "help" | "quit" | "q":
                yield from self._about(word, argument)
            case "next" | "n" | "back" | "b":
                self._move(self.at[self.using] + (1 if word[0] == "n" else -1) * _whole(argument or "1"))
                yield from self._here()
            case "goto":
                self._move(_whole(argument))
                yield from self._here()
            case "time":
                self._move(self.trace.at_time(_nanoseconds(argument)))
                yield from self._here()
            case "find":
                yield from self._find(argument)
            case "state":
                yield from _pretty(self.trace.state(self.at[self.using]), argument)
            case "why":
                yield from story(self.paths, _whole(argument))
            case _:
                raise WrongWordError(f"'{word}' means nothing here; 'help' shows what does")

    def _about(self, word: str, argument: str) -> Iterator[str]:
        match word:
            case "traces":
                for number, trace in enumerate(self.traces):
                    mark = "*" if number == self.using else " "
                    yield f"{mark}{number:>3} {trace.role} {trace.endpoint}, records {trace.first} to {trace.count - 1}"
            case "use":
                chosen = _whole(argument)
                if not 0 <= chosen < len(self.traces):
                    raise WrongWordError(f"there is no endpoint {chosen}: 'traces' shows them")
                self.using = chosen
                yield from self._here()
            case "help":
                yield HELP
            case "quit" | "q":
                self.over = True

    def _move(self, number: int) -> None:
        self.trace.record(number)
        self.at[self.using] = number

    def _here(self) -> Iterator[str]:
        yield from sentence(self.trace.record(self.at[self.using]))

    def _find(self, kind: str) -> Iterator[str]:
        wanted = RecordFilter(kind=kind)
        for number in range(self.at[self.using] + 1, self.trace.count):
            if self.trace.record(number) in wanted:
                self.at[self.using] = number
                yield from self._here()
                return
        raise WrongWordError(f"no record from here on has '{kind}'")


def story(paths: list[Path], number: int) -> Iterator[str]:
    """Yield the history of a message for people."""
    steps = why(paths, number)
    if not steps:
        yield f"no trace has a message {number}"
    life = None
    for step in steps:
        if step.life != life:
            life = step.life
            yield f"message {number} of life {life:#x}"
        seconds = f"{step.time // SECOND}.{step.time % SECOND:09d}"
        yield f"  {step.role} {step.endpoint}, record {step.record} at {seconds}: {step.text}"


def _pretty(state: Json, field: str) -> Iterator[str]:
    value: object = state
    for name in filter(None, field.split(".")):
        if not isinstance(value, dict) or name not in value:
            known = ", ".join(value) if isinstance(value, dict) else "none"
            raise WrongWordError(f"there is no field '{name}' in it; there are: {known}")
        value = value[name]
    if isinstance(value, dict) and any(kinds(value)):
        yield shown(value)
    else:
        yield msgspec.json.format(json.dumps(value), indent=1)  # the library's own indents in Python, 20 ms of a store


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WrongWordError(f"'{text}' is not a whole number") from None


def _nanoseconds(text: str) -> int:
    whole, _, fraction = text.partition(".")
    return _whole(whole) * SECOND + _whole((fraction or "0").ljust(9, "0")[:9])
