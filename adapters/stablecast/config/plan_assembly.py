"""Assembly of a daemon's plan from its configuration; all problems are reported together."""

from collections.abc import Callable, Sequence
from pathlib import Path

from stablecast.config import toml_file, xml_file
from stablecast.config.client_configuration import says_nothing
from stablecast.config.daemon_outline import Outline
from stablecast.config.daemon_section import daemon_plan
from stablecast.config.findings import ConfigFindings, ConfigPlace
from stablecast.config.option_files import OptionFile, Setting, read
from stablecast.config.option_names import SAFE
from stablecast.config.plan import DaemonPlan, Plan, StorePlan
from stablecast.config.profiles import profile
from stablecast.config.store_section import StoreBuilder
from stablecast.text import unread

STORE_APPLICATION = "umestored"
"""The application of a store in an XML file of options, by default (documented)."""
ReadFlat = Callable[[Path], OptionFile]


def load(path: Path, profile_name: str = SAFE, *, here: bool = True) -> Plan:
    """Return the plan of a configuration file: TOML if its name ends in .toml, else XML; `here`: of this host.

    Raises:
        ConfigFileError: The configuration has problems.
        OptionError: There is no such profile.
        OSError: A file cannot be read.
    """
    outline = toml_file.load(path) if path.suffix == ".toml" else xml_file.load(path)
    return build(outline, profile_name, here=here)


def build(outline: Outline, profile_name: str = SAFE, read_flat: ReadFlat = read, *, here: bool = True) -> Plan:
    """Return the plan of an outline, with the defaults of a profile. Raises like `load`."""
    found = ConfigFindings(here=here)
    defaults = profile(profile_name)
    daemon = daemon_plan(outline, found)
    settings = _settings(daemon, found, read_flat)
    stores = [
        StoreBuilder(defaults, (*_xml_settings(daemon, store.name, found), *settings), found).build(store)
        for store in outline.stores
    ]
    _compare(stores, found)
    if not stores:
        found.notice(ConfigPlace(0, "stores"), "there are no stores: the daemon serves nothing")
    found.check(outline.path)
    return Plan(outline.path, daemon, tuple(stores), tuple(dict.fromkeys(found.notices)), found.elsewhere)


def _settings(daemon: DaemonPlan, found: ConfigFindings, read_flat: ReadFlat) -> tuple[Setting, ...]:
    """Return the settings of the daemon's option file, and add its problems. Raises ConfigFileError."""
    if daemon.options is None:
        return ()
    try:
        lines = read_flat(daemon.options)
        found.problems += lines.problems
        return tuple(one for one in lines.settings if not says_nothing(one))
    except OSError as error:
        found.problem(ConfigPlace(0, "lbm-config"), unread(daemon.options, error))
        return ()


def _xml_settings(daemon: DaemonPlan, store: str, found: ConfigFindings) -> tuple[Setting, ...]:
    """Return the settings of the daemon's XML file of options, which its option file overrides."""
    path = daemon.xml_options
    if path is None:
        return ()
    from stablecast.config import client_xml  # noqa: PLC0415 - most daemons have no such file

    selection = client_xml.Selection(daemon.application, usual_application=STORE_APPLICATION, usual_context=store)
    place = ConfigPlace(0, "xml-config")
    if not daemon.application:
        found.notice(place, f"application-name is missing: the documented default is {STORE_APPLICATION}")
    try:
        layer = found.attempt(place, None, lambda: client_xml.load(path, selection))
    except OSError as error:
        found.problem(place, unread(path, error))
        return ()
    if layer is None:
        return ()
    if layer.sections:
        found.notice(place, f"{path}: sections of topics have no effect: write options into the topics of the store")
    return layer.settings


def _compare(stores: Sequence[StorePlan], found: ConfigFindings) -> None:
    """Find names, directories and ports that two stores share."""
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
                found.problem(ConfigPlace(0, "stores"), f"store {other} and store {index} have the same {what[0]}")
