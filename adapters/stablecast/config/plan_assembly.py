"""From what a configuration says to what a daemon runs by: everything that is wrong is told at once."""

from collections.abc import Callable, Sequence
from pathlib import Path

from stablecast.config import toml_file, xml_file
from stablecast.config.daemon_outline import ConfigFileError, Outline, Place
from stablecast.config.daemon_section import daemon_plan
from stablecast.config.findings import Findings
from stablecast.config.option_files import Setting, read
from stablecast.config.option_names import SAFE
from stablecast.config.plan import DaemonPlan, Plan, StorePlan
from stablecast.config.profiles import profile
from stablecast.config.store_section import StoreBuilder

ReadFlat = Callable[[Path], tuple[Setting, ...]]


def load(path: Path, profile_name: str = SAFE) -> Plan:
    """The plan of a configuration file: TOML if it is named so, else XML.

    Raises:
        ConfigFileError: Something in it is wrong.
        FlatFileError: Something in the option file that it names is.
        OptionError: There is no such profile.
        OSError: A file cannot be read.
    """
    outline = toml_file.load(path) if path.suffix == ".toml" else xml_file.load(path)
    return build(outline, profile_name)


def build(outline: Outline, profile_name: str = SAFE, read_flat: ReadFlat = read) -> Plan:
    """What a daemon of this configuration runs by; defaults are those of a profile. Raises like `load`."""
    found = Findings()
    defaults = profile(profile_name)
    daemon = daemon_plan(outline, found)
    settings = _settings(daemon, found, read_flat)
    stores = [StoreBuilder(defaults, settings, found).build(store) for store in outline.stores]
    _compare(stores, found)
    if not stores:
        found.notice(Place(0, "stores"), "there are no stores: nothing would be served")
    if found.problems:
        raise ConfigFileError(outline.path, found.problems)
    return Plan(outline.path, daemon, tuple(stores), tuple(dict.fromkeys(found.notices)))


def _settings(daemon: DaemonPlan, found: Findings, read_flat: ReadFlat) -> tuple[Setting, ...]:
    """What the daemon's option file says. Raises FlatFileError."""
    if daemon.options is None:
        return ()
    try:
        return read_flat(daemon.options)
    except OSError as error:
        text = f"{daemon.options} cannot be read: {error.strerror or error}; correct lbm-config or take it out"
        found.problem(Place(0, "lbm-config"), text)
        return ()


def _compare(stores: Sequence[StorePlan], found: Findings) -> None:
    """What two stores must not share."""
    seen: dict[tuple[str, object], int] = {}
    for index, store in enumerate(stores):
        shared: list[tuple[str, object]] = [
            ("name", store.name),
            ("disk-cache-directory", store.cache_directory),
            ("disk-state-directory", store.state_directory),
        ]
        shared += [("port", (store.host, store.port))] if store.port else []
        shared += [("context-name", store.context_name)] if store.context_name else []
        for what in shared:
            other = seen.setdefault(what, index)
            if other != index:
                found.problem(Place(0, "stores"), f"store {other} and store {index} have the same {what[0]}")
