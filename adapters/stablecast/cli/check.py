"""Report what is wrong in configuration files, alone and against each other, for `stablecast check`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from stablecast.cli.resolution_daemons import read as read_service
from stablecast.config import client_files
from stablecast.config.checks import Advice, AdviceLevel, ClientOptions, check
from stablecast.config.file_kinds import FileKind, kind_of
from stablecast.config.findings import ConfigFileError, ConfigPlace, ConfigProblem, read_bytes
from stablecast.config.plan import Plan
from stablecast.config.plan_assembly import load
from stablecast.core.errors import StablecastError
from stablecast.resolver.lbmrd import config as relays
from stablecast.router import checks, router_files
from stablecast.router.config import RouterConfig
from stablecast.runtime import tls
from stablecast.runtime.interfaces import InterfaceError, check_local
from stablecast.runtime.policy import POLICY, Policy, Rule
from stablecast.text import plural, unread
from stablecast.text.console import show
from stablecast.text.exit_status import FAILED


@attrs.define
class _Check:
    """The plans and clients of files, and the findings in each; one wrong file hides nothing of the others."""

    profile: str
    application: str
    context: str
    plans: list[Plan] = attrs.field(factory=list)
    clients: list[ClientOptions] = attrs.field(factory=list)
    routers: list[RouterConfig] = attrs.field(factory=list)
    found: list[Advice] = attrs.field(factory=list)

    def read(self, path: Path) -> None:
        """Read one file, and add what is wrong in it."""
        try:
            self._read(path)
        except ConfigFileError as error:
            self.found += [_of("invalid", AdviceLevel.ERROR, str(path), problem) for problem in error.problems]
        except StablecastError as error:
            self.found.append(Advice("invalid", AdviceLevel.ERROR, str(path), str(error)))
        except OSError as error:
            text = unread(path, error).removeprefix(f"{path} ")  # A finding has its place beside it.
            self.found.append(Advice("unreadable", AdviceLevel.ERROR, str(path), text))

    def _read(self, path: Path) -> None:
        if path.name == POLICY:
            self._policy(path)
            return
        match kind_of(path):
            case FileKind.DAEMON:
                self.plans.append(load(path, self.profile, here=False))
                self._notices(str(path), self.plans[-1].notices)
            case FileKind.CLIENT:
                wrong: list[ConfigProblem] = []
                clients = client_files.load_clients(path, self.profile, self.application, self.context, wrong)
                self.clients += clients
                for client in clients:
                    self._notices(client.path, client.notices)
                if wrong:
                    raise ConfigFileError(str(path), wrong)
            case FileKind.RELAY:
                relay = relays.load(path, here=False)
                self._notices(str(path), relay.notices)
                self._notices(str(path), [ConfigProblem(ConfigPlace(0, "ttl"), relay.late)] if relay.late else [])
            case FileKind.SERVICE:
                self._service(path)
            case FileKind.ROUTER:
                self.routers.append(router_files.load(path, here=False))
                self._notices(str(path), self.routers[-1].notices)

    def _policy(self, path: Path) -> None:
        """Name the roles of the certificate beside a policy: no other certificate is at hand."""
        policy = Policy.parse(read_bytes(path))
        own = tls.own_names(str(path.parent))
        rules = policy.rules_of(own)
        told = sorted({f"{right}{_topics(rule)}" for rule in rules for right in rule.rights})
        roles = f"may be {', '.join(told)}" if told else "may do nothing: no pattern of names matches it"
        code, level = ("policy", AdviceLevel.ADVICE) if told else ("policy-gives-nothing", AdviceLevel.WARNING)
        self.found.append(Advice(code, level, str(path), f"{tls.CERTIFICATE} ({', '.join(own)}) {roles}"))

    def _service(self, path: Path) -> None:
        service = read_service(path)
        texts = list(service.notices)
        try:
            check_local(service.interface)
        except InterfaceError as error:
            texts.append(str(error))
        self.found += [Advice("notice", AdviceLevel.ADVICE, str(path), text) for text in texts]

    def _notices(self, path: str, notices: Iterable[ConfigProblem]) -> None:
        self.found += [_of("notice", AdviceLevel.ADVICE, path, notice) for notice in notices]


def run(files: Sequence[Path], profile_name: str, as_json: bool, application: str = "", context: str = "") -> int:
    """Check files alone and against each other; return 1 if a finding is an error.

    `application` and `context` select those of XML files; empty: those of the environment, else all.
    """
    checked = _Check(profile_name, application, context)
    for path in files:
        checked.read(path)
    found = [
        *checked.found,
        *check(checked.plans, checked.clients),
        *checks.check(checked.routers, checked.plans, checked.clients),
    ]
    advice = {"advice": [{**attrs.asdict(one), "level": one.level.value} for one in found]}
    lines = [f"{one.level.value}: {one.where}: {one.text} [{one.code}]" for one in found]
    show(advice, [*lines, f"{plural(len(files), 'file')}, {plural(len(found), 'finding')}"], as_json)
    return FAILED if any(one.level is AdviceLevel.ERROR for one in found) else 0


def _topics(rule: Rule) -> str:
    return f" of {' or '.join(one.pattern for one in rule.topics)}" if rule.topics else ""


def _of(code: str, level: AdviceLevel, path: str, problem: ConfigProblem) -> Advice:
    return Advice(code, level, problem.where(path), problem.text)
