"""The operator's configuration: flat files as the documentation has them, and what else the command line says.

One `scope option value` per line, `#` begins a comment; scopes and names are the same in upper and lower case. Later
lines override earlier ones; lists (`ume_store`, `ume_store_name`, `ume_store_group`) append, and their all-zero entry
clears them. Only the source's options decide here. What other scopes say is passed over, and so is what the source's
transport is told; a name that begins like one of persistence and is none is refused, for it is a slip.
"""

from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.config.options import ALIASES, SCOPES, apply
from stablecast.config.profiles import profile
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.setting_relations import Finding, relations
from stablecast.core.protocol.settings import SourceConfig, StoreBehavior
from stablecast.lab.prove.bounds import MAX_STATES, Fault
from stablecast.lab.prove.errors import ProveError

OTHER_SCOPES = ("receiver", "context", "wildcard_receiver", "event_queue", "hfx", "store", "topic")
MAX_STORES = 32
"""More than these no search gets through."""
OURS = "ume_"
BEHAVIOR, GROUP = "ume_store_behavior", "ume_store_group"


SMALL = 3
"""Stores up to which two messages are sent by default, beyond it one: their order then costs more than it shows."""


@attrs.frozen
class Bounds:
    """How much may happen: messages sent, restarts of the source, disks lost; and how many states are looked at.

    `messages` 0: two, or one where there are more than `SMALL` stores, and in a pass with takeovers. `faults`: what
    else may go wrong; None: nothing in a first pass, and all of it in a second one where there are at most `SMALL`
    stores (`passes`).
    """

    messages: int = 0
    restarts: int = 1
    wipes: int = 0
    states: int = MAX_STATES
    faults: tuple[Fault, ...] | None = None

    def passes(self, stores: int) -> "list[Bounds]":
        """Return the bounds of each search: two messages and takeovers at once are more than a minute shows."""
        few = stores <= SMALL
        if self.faults is not None:
            messages = self.messages or (2 if few and not self.faults else 1)
            return [attrs.evolve(self, messages=messages)]
        plain = attrs.evolve(self, messages=self.messages or (2 if few else 1), faults=())
        rivals = attrs.evolve(self, messages=self.messages or 1, faults=tuple(Fault))
        return [plain, rivals] if few else [plain]


@attrs.frozen
class Instance:
    """What to prove: a source, which repairs its stores and receivers have, and bounds. `notes` are for people."""

    source: SourceConfig
    store_repairs: Repair
    receiver_repairs: Repair
    bounds: Bounds = Bounds()
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What does not fit in the configuration."""
        return relations(self.source)


@attrs.frozen
class Line:
    """One setting, and where it was found."""

    name: str
    value: str
    where: str


def instance(files: Sequence[Path], options: Sequence[str], name: str, bounds: Bounds) -> Instance:
    """What files and options say over the defaults of a profile.

    Raises:
        ProveError: For what cannot be read, and when there are no stores.
        OSError: If a file cannot be read.
    """
    notes: list[str] = []
    lines = [line for path in files for line in _lines(path, notes)]
    lines += [_option(text) for text in options]
    defaults = profile(name)
    config = defaults.source
    named = {line.name for line in lines}
    if GROUP in named and BEHAVIOR not in named and config.behavior is StoreBehavior.RR:
        notes.append(f"{BEHAVIOR} is not set and round robin knows no groups: taken as quorum-consensus")
        config = attrs.evolve(config, behavior=StoreBehavior.QC)
    # A size that comes before the stores could pass for the length of their list, and grow with it.
    for line in sorted(lines, key=lambda line: line.name == GROUP):
        try:
            config = apply("source", config, {line.name: line.value})
        except StablecastError as error:
            raise ProveError(f"{line.where}: {error}") from error
    if not config.stores:
        raise ProveError("no stores are configured: nothing that this source sends is persistent")
    if len(config.stores) > MAX_STORES:
        raise ProveError(f"{len(config.stores)} stores are configured: more than {MAX_STORES} are not searched through")
    if not config.session_id and not any(store.reg_id for store in config.stores):
        notes.append("the source has neither a session id nor registration IDs: taken to return under its old ones")
    bounds = bounds.passes(len(config.stores))[0]
    return Instance(config, defaults.store.repairs, defaults.receiver.repairs, bounds, tuple(notes))


def _lines(path: Path, notes: list[str]) -> list[Line]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ProveError(f"{path} is not a text file: {error.reason} at byte {error.start}") from error
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.partition("#")[0].split(maxsplit=2)
        if not words:
            continue
        where = f"{path}:{number}"
        if len(words) < 3:
            raise ProveError(f"{where}: '{raw.strip()}' is not a setting: write scope option value")
        scope, name, value = words[0].lower(), words[1].lower(), words[2].strip()
        if scope not in (*OTHER_SCOPES, "source"):
            raise ProveError(
                f"{where}: there is no scope '{words[0]}': write source, or one of {', '.join(OTHER_SCOPES)}"
            )
        if scope == "source" and (name.startswith(OURS) or name in _known()):
            lines.append(Line(name, value, where))
        else:
            notes.append(f"{where}: {scope} {name} says nothing about stores: passed over")
    return lines


def _known() -> set[str]:
    return {option.name for option in SCOPES["source"]} | set(ALIASES["source"])


def _option(text: str) -> Line:
    name, equals, value = text.partition("=")
    if not equals:
        raise ProveError(f"'{text}' is not an option: write name=value")
    return Line(name, value, f"option {name}")
