"""Read the operator's configuration: option files and the options of the command line.

A file has one `scope option value` per line, and `#` begins a comment. Scopes and names ignore case. Later lines
override earlier ones. Lists (`ume_store`, `ume_store_name`, `ume_store_group`) append, and their all-zero entry clears
them. Only the source's options matter here: other scopes and transport options are skipped. An unknown name with the
prefix of persistence options is an error, because it is probably a typing mistake.
"""

from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.config import client_files
from stablecast.config.client_configuration import ConfigLayer, merged
from stablecast.config.option_files import Setting
from stablecast.config.options import ALIASES, SCOPES, apply
from stablecast.config.profiles import profile
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.setting_relations import Finding, relations
from stablecast.core.protocol.settings import SourceConfig, StoreBehavior
from stablecast.lab.prove.bounds import MAX_STATES, MAX_WIPES, TAKEOVERS, ProofFault


class ProveError(StablecastError):
    """Report a configuration that cannot be read, or that no source could start with."""


MAX_STORES = 32
"""Most stores; no search covers more."""
BEHAVIOR, GROUP = "ume_store_behavior", "ume_store_group"


SMALL = 3
"""Most stores for which two messages are sent by default. With more stores the order of two messages costs too much."""


@attrs.frozen
class ProofBounds:
    """Bound the messages, restarts, lost disks and states.

    `messages` 0: two, or one with more than `SMALL` stores and in a pass with faults. `faults` None: none in a first
    pass, and both takeovers in a second one if there are at most `SMALL` stores (`passes`). `wipes` 0: none, or
    `MAX_WIPES` if disks are lost one after the other.
    """

    messages: int = 0
    restarts: int = 1
    wipes: int = 0
    states: int = MAX_STATES
    faults: tuple[ProofFault, ...] | None = None

    def passes(self, stores: int) -> "list[ProofBounds]":
        """Return the bounds of each search. Two messages and takeovers together take more than a minute."""
        few = stores <= SMALL
        if self.faults is not None:
            messages = self.messages or (2 if few and not self.faults else 1)
            wipes = self.wipes or (MAX_WIPES if ProofFault.WIPE in self.faults else 0)
            return [attrs.evolve(self, messages=messages, wipes=wipes)]
        plain = attrs.evolve(self, messages=self.messages or (2 if few else 1), faults=())
        rivals = attrs.evolve(self, messages=self.messages or 1, faults=TAKEOVERS)
        return [plain, rivals] if few else [plain]


@attrs.frozen
class Instance:
    """Hold a source, the repairs of its stores and receivers, and bounds. `notes` are printed.

    `refill`: stores get what they lack from each other. It decides nothing while no disk is lost.
    """

    source: SourceConfig
    store_repairs: Repair
    receiver_repairs: Repair
    bounds: ProofBounds = ProofBounds()
    notes: tuple[str, ...] = ()
    refill: bool = False

    @property
    def refills(self) -> bool:
        """True if the search includes refill."""
        return self.refill and ProofFault.WIPE in (self.bounds.faults or ())

    @property
    def findings(self) -> tuple[Finding, ...]:
        return relations(self.source)


def instance(
    files: Sequence[Path],
    options: Sequence[str],
    name: str,
    bounds: ProofBounds,
    of: tuple[str, str] = ("", ""),
    topic: str | None = None,
    refill: bool | None = None,
) -> Instance:
    """Return the instance of files and options over the defaults of a profile.

    Args:
        files: Option files, XML and TOML files.
        options: Options of the source, above the files.
        name: The profile.
        bounds: The bounds of the search.
        of: Application and context of XML files.
        topic: The topic whose section of XML and TOML files counts; None: no section.
        refill: Whether stores refill; None: as the profile says.

    Raises:
        ConfigFileError: a file is wrong.
        ProveError: an option of the command is wrong, or there are no stores.
        OSError: a file cannot be read.
    """
    notes: list[str] = []
    lines = [line for layer in client_files.load(files, *of).layers for line in _lines(layer, topic, notes)]
    lines += [_option(text) for text in options]
    defaults = profile(name)
    config = defaults.source
    named = {line.name for line in lines}
    if GROUP in named and BEHAVIOR not in named and config.behavior is StoreBehavior.RR:
        notes.append(f"{BEHAVIOR} is not set, and round robin has no groups: quorum-consensus is assumed")
        config = attrs.evolve(config, behavior=StoreBehavior.QC)
    try:
        config = apply("source", config, merged(lines))
    except StablecastError as error:
        raise ProveError(str(error)) from error
    if not config.stores:
        raise ProveError("no stores are configured: no message of this source is persistent")
    if len(config.stores) > MAX_STORES:
        raise ProveError(f"{len(config.stores)} stores are configured: a search covers at most {MAX_STORES}")
    if not config.session_id and not any(store.reg_id for store in config.stores):
        notes.append(
            "the source has neither a session id nor registration IDs: it is assumed to return under its old ones"
        )
    bounds = bounds.passes(len(config.stores))[0]
    refilling = defaults.store.refill if refill is None else refill
    return Instance(config, defaults.store.repairs, defaults.receiver.repairs, bounds, tuple(notes), refilling)


def _lines(layer: ConfigLayer, topic: str | None, notes: list[str]) -> list[Setting]:
    lines = []
    settings = [*(one for one in layer.settings if one.scope != "source"), *layer.of("source", topic)]
    for setting in sorted(settings, key=lambda setting: setting.line):
        where = f"{layer.path}:{setting.line}"
        if setting.scope == "source" and setting.name in _known():
            lines.append(setting)
        else:
            notes.append(f"{where}: {setting.scope} {setting.name} does not concern stores: skipped")
    return lines


def _known() -> set[str]:
    return {option.name for option in SCOPES["source"]} | set(ALIASES["source"])


def _option(text: str) -> Setting:
    name, equals, value = text.partition("=")
    if not equals:
        raise ProveError(f"'{text}' is not an option: write name=value")
    return Setting("source", name, value, 0)
