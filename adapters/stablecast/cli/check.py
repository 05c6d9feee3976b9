"""Report the contradictions in configuration files, for `stablecast check`."""

from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.config import client_files
from stablecast.config.checks import Advice, AdviceLevel, check
from stablecast.config.file_kinds import FileKind, kind_of
from stablecast.config.findings import ConfigProblem
from stablecast.config.plan_assembly import load
from stablecast.text import plural
from stablecast.text.console import show
from stablecast.text.exit_status import FAILED


def run(files: Sequence[Path], profile_name: str, as_json: bool) -> int:
    """Check files alone and against each other; return 1 if a finding is an error. Raises what reading them raises."""
    kinds = {path: kind_of(path) for path in files}
    plans = [load(path, profile_name) for path in files if kinds[path] is FileKind.DAEMON]
    named = [path for path in files if kinds[path] is FileKind.CLIENT]
    clients = [client for path in named for client in client_files.load_clients(path, profile_name)]
    notices = [(file.path, file.notices) for file in plans] + [(file.path, file.notices) for file in clients]
    found = [_notice(path, notice) for path, those in notices for notice in those]
    found += check(plans, clients)
    advice = {"advice": [{**attrs.asdict(one), "level": one.level.value} for one in found]}
    lines = [f"{one.level.value}: {one.where}: {one.text} [{one.code}]" for one in found]
    show(advice, [*lines, f"{plural(len(files), 'file')}, {plural(len(found), 'finding')}"], as_json)
    return FAILED if any(one.level is AdviceLevel.ERROR for one in found) else 0


def _notice(path: str, notice: ConfigProblem) -> Advice:
    return Advice("notice", AdviceLevel.ADVICE, notice.where(path), notice.text)
