"""Report the contradictions in configuration files, for `stablecast check`."""

from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.config.checks import Advice, AdviceLevel, ClientOptions, check
from stablecast.config.findings import ConfigPlace, ConfigProblem
from stablecast.config.option_files import read
from stablecast.config.options import apply
from stablecast.config.plan import Plan
from stablecast.config.plan_assembly import load
from stablecast.config.profiles import profile
from stablecast.config.transport_options import split
from stablecast.core.errors import StablecastError
from stablecast.text import plural
from stablecast.text.console import show
from stablecast.text.exit_status import FAILED

DAEMONS = (".xml", ".toml")
"""Suffixes of daemon configurations. Other files are option files of clients."""


def run(files: Sequence[Path], profile_name: str, as_json: bool) -> int:
    """Check files alone and against each other; return 1 if a finding is an error. Raises what reading them raises."""
    plans = [load(path, profile_name) for path in files if path.suffix in DAEMONS]
    clients = [_client(path, profile_name) for path in files if path.suffix not in DAEMONS]
    found = [_notice(plan, notice) for plan in plans for notice in plan.notices] + check(plans, clients)
    advice = {"advice": [{**attrs.asdict(one), "level": one.level.value} for one in found]}
    lines = [f"{one.level.value}: {one.where}: {one.text} [{one.code}]" for one in found]
    show(advice, [*lines, f"{plural(len(files), 'file')}, {plural(len(found), 'finding')}"], as_json)
    return FAILED if any(one.level is AdviceLevel.ERROR for one in found) else 0


def _notice(plan: Plan, notice: ConfigProblem) -> Advice:
    return Advice("notice", AdviceLevel.ADVICE, f"{plan.path}:{notice.place}", notice.text)


def _client(path: Path, profile_name: str) -> ClientOptions:
    """Return the client that an option file describes. Raises StablecastError with the line that is wrong."""
    defaults = profile(profile_name)
    source, receiver = attrs.evolve(defaults.source, topic="topic"), defaults.receiver
    transport = defaults.transport
    for setting in read(path):
        try:
            transport, others = split({setting.name: setting.value}, transport)
            if setting.scope == "source":
                source = apply("source", source, others)
            elif setting.scope == "receiver":
                receiver = apply("receiver", receiver, others)
        except StablecastError as error:
            raise StablecastError(f"{path}:{ConfigPlace(setting.line, setting.name)}: {error}") from error
    return ClientOptions(str(path), source, receiver, transport)
