"""Render blocks of the chapters in `spec/` from the code, and compare written tables with it.

A block stands between markers. `STABLECAST_REWRITE=1 pytest tests/test_chapters.py` renders all blocks again. The first
line of a block names its content:

    <!-- chart: registration -->                        diagram and table of a chart
    <!-- bounds: registration requests -->              the named constants of modules of the core, or `transports.` ...
    <!-- options: source ume_flight_size ... -->        some options of a scope, or all, with their defaults
    <!-- rules: one trace -->                           the rules of a judge, and what it checks of them
    <!-- catalogue: rules -->                           every rule, with all that is known of it
    <!-- properties: models -->                         the properties of the models, and the rules that they state
    ...
    <!-- end -->

A written table is compared by its first two cells. The line before it names the object to compare with:

    <!-- members: core.protocol.messages.Refusal -->    name and value of each member of an enum or a mapping
    <!-- fields: core.protocol.events.SourceEvent -->   name and fields of each class of a union
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from inspect import getsource
from itertools import pairwise
from types import ModuleType
from typing import Any, get_args

import attrs

from stablecast.config.client_options import RECEIVER_OPTIONS, SOURCE_OPTIONS
from stablecast.config.option import Option
from stablecast.config.option_names import SAFE
from stablecast.config.profiles import profile
from stablecast.config.store_options import STORE_OPTIONS, TOPIC_OPTIONS
from stablecast.config.transport_options import TRANSPORT_OPTIONS, TransportConfig
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.receiver import RECEIVER, ReceiverState
from stablecast.core.receiver.hot_failover import HOT, HotState
from stablecast.core.registration.store_registration import REGISTRATION, RegistrationState
from stablecast.core.sharing.share import SHARE, ShareState
from stablecast.core.source import SOURCE, SourceState
from stablecast.core.store.client_lifetime import LIFETIME, LifetimeState
from stablecast.core.store.proxy_election import ELECTION, ElectionState
from stablecast.evidence.rules import JUDGES, RULES, judges_of
from stablecast.evidence.rules.catalogue import PROPERTIES
from stablecast.transports.reliable.lbtrm.receiver import LISTENING, ListeningState
from stablecast.transports.reliable.lbtru.receiver import CONNECTION, ConnectionState
from stablecast.transports.reliable.source_session import SESSION, SessionState
from stablecast.transports.resolution.srs.client import CLIENT, ClientState
from stablecast.transports.resolution.srs.service_link import LINK, LinkState
from stablecast.transports.resolution.udp.phases import PHASES, Phase
from tests.adapters.evidence.trace.planted_faults import LIES
from tests.support.option_values import show, unit_of
from tests.support.rendered_charts import render_mermaid, render_table

CHARTS: Mapping[str, tuple[Any, Any]] = {
    "registration": (REGISTRATION, RegistrationState.IDLE),
    "source": (SOURCE, SourceState.IDLE),
    "receiver": (RECEIVER, ReceiverState.WAITING),
    "lifetime": (LIFETIME, LifetimeState.ACTIVE),
    "hot_failover": (HOT, HotState.EMPTY),
    "share": (SHARE, ShareState.RELEASED),
    "election": (ELECTION, ElectionState.WATCHING),
    "phases": (PHASES, Phase.QUIESCENT),
    "client": (CLIENT, ClientState.ANNOUNCING),
    "link": (LINK, LinkState.WAITING),
    "session": (SESSION, SessionState.OPEN),
    "listening": (LISTENING, ListeningState.WAITING),
    "connection": (CONNECTION, ConnectionState.CONNECTING),
}
"""The charts in chapters, each with its initial state."""

OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "source": SOURCE_OPTIONS,
    "receiver": RECEIVER_OPTIONS,
    "transport": TRANSPORT_OPTIONS,
    "store": (*STORE_OPTIONS, *(option.below("repository") for option in TOPIC_OPTIONS)),
}

BLOCK = re.compile(
    r"(<!-- (chart|bounds|options|planted|rules|catalogue|properties): ([\w .-]+) -->\n).*?(<!-- end -->)", re.DOTALL
)
TABLE = re.compile(r"<!-- (members|fields): ([\w.]+) -->\n\n?((?:\|.*\n)+)")


def rendered(chapter: str) -> str:
    """Return the chapter with every block rendered from the code."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{RENDERERS[block[2]](block[3].split())}\n{block[4]}", chapter)


def blocks(chapter: str, kind: str) -> list[str]:
    """Return the arguments of all blocks of one kind."""
    return [names for _, found, names, _ in BLOCK.findall(chapter) if found == kind]


def tables(chapter: str) -> Iterator[tuple[str, list[tuple[str, str]], list[tuple[str, str]]]]:
    """Yield for each compared table its object, its first two cells row by row, and the expected cells."""
    for kind, path, lines in TABLE.findall(chapter):
        rows = [[cell.strip(" `") for cell in line.split("|")[1:3]] for line in lines.splitlines()[2:]]
        yield path, [(name, second) for name, second in rows], list(EXPECTED[kind](_found(path)))


def _chart(names: list[str]) -> str:
    table, initial = CHARTS[names[0]]
    return f"```mermaid\n{render_mermaid(table, initial)}```\n\n{render_table(table)}"


def _bounds(names: list[str]) -> str:
    modules = [import_module(f"stablecast.{'' if name.startswith('transports.') else 'core.'}{name}") for name in names]
    rows = [f"| {name} | {value} | {text} |" for module in modules for name, value, text in constants(module)]
    return "\n".join(["| constant | value | meaning |", "|---|---|---|", *rows, ""])


def _options(names: list[str]) -> str:
    scope, *chosen = names
    default = TransportConfig() if scope == "transport" else getattr(profile(SAFE), scope)
    table = {option.name: option for option in OPTIONS[scope]}
    rows = [
        f"| {name} | {show(table[name], default)} {unit_of(table[name].kind)}".rstrip() + f" | {table[name].summary} |"
        for name in chosen or table
    ]
    return "\n".join([f"| {scope} option | default | meaning |", "|---|---|---|", *rows, ""])


def _planted(_: list[str]) -> str:
    rows = [f"| {lie.role.name.lower()} | {lie.name} | {lie.rule} | {lie.judged} |" for lie in LIES]
    return "\n".join(["| endpoint | planted fault | simulator | traces |", "|---|---|---|---|", *rows, ""])


def _rules(names: list[str]) -> str:
    judge = next(judge for judge in JUDGES if judge.name == " ".join(names))
    rows = [f"| {rule} | {RULES[rule].name} | {checks} |" for rule, checks in judge.checks.items()]
    return "\n".join(["| rule | name | this judge checks that |", "|---|---|---|", *rows, ""])


def _catalogue(_: list[str]) -> str:
    lines = []
    for rule in RULES.values():
        lines += [f"### {rule.title}", "", rule.statement, "", f"* Evidence needed: {rule.needs}"]
        lines += [f"* Broken by: {rule.breaks}", f"* When it is broken: {rule.remedy}", "* Judged by:"]
        lines += [f"    * {judge.name}: {judge.checks[rule.id]}" for judge in judges_of(rule.id)]
        lines.append("")
    return "\n".join(lines)


def _properties(_: list[str]) -> str:
    rows = [f"| {one.rule} | {one.path} | {one.statement} | {one.guard} |" for one in PROPERTIES]
    return "\n".join(["| rule | property | statement | guarded by |", "|---|---|---|---|", *rows, ""])


RENDERERS: Mapping[str, Callable[[list[str]], str]] = {
    "chart": _chart,
    "bounds": _bounds,
    "options": _options,
    "planted": _planted,
    "rules": _rules,
    "catalogue": _catalogue,
    "properties": _properties,
}


def constants(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and docstring of each documented number among the constants of a module."""
    body = ast.parse(getsource(module)).body
    for statement, after in pairwise(body):
        match statement, after:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if isinstance(value := getattr(module, name), int):
                yield name, _number(name, value), " ".join(text.split())


def _number(name: str, value: int) -> str:
    return f"{value // MILLISECOND:,} ms" if name.endswith("_NS") else f"{value:,}"


def _found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"stablecast.{module}"), name)


def _members(found: Any) -> Iterator[tuple[str, str]]:
    if isinstance(found, Mapping):
        yield from ((str(name), str(value)) for name, value in found.items())
    else:
        yield from ((member.name, _value(member)) for member in found.__members__.values())


def _value(member: Enum) -> str:
    return member.value if isinstance(member, str) else str(int(member.value))


def _fields(union: Any) -> Iterator[tuple[str, str]]:
    for cls in get_args(union):
        yield cls.__name__, ", ".join(field.name for field in attrs.fields(cls)) or "–"


EXPECTED: Mapping[str, Callable[[Any], Iterator[tuple[str, str]]]] = {"members": _members, "fields": _fields}
