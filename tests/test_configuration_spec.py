"""The chapter about configuration files has the reasons of the program, and its examples work."""

import os
import re

import pytest

from stablecast.config.client_files import load
from stablecast.config.context_options import CONTEXT_OPTIONS
from stablecast.config.documented_options import documented
from stablecast.config.resolution_options import OLD
from tests.support.configurations import option_file
from tests.support.option_values import type_of
from tests.support.tree import ROOT

CHAPTER = ROOT / "spec" / "configuration.md"
BLOCK = re.compile(r"(<!-- option effects -->\n).*?(<!-- end -->)", re.DOTALL)
EXAMPLE = re.compile(r"```(cfg|xml|toml)\n(.*?)```", re.DOTALL)
EXAMPLES = EXAMPLE.findall(CHAPTER.read_text(encoding="utf-8"))


def render() -> str:
    lines = ["", "Options of a context itself:", "", "| option | type | values | meaning |", "|---|---|---|---|"]
    lines += [f"| {one.name} | {type_of(one.kind)} | {one.kind.allowed} | {one.summary} |" for one in CONTEXT_OPTIONS]
    lines += ["", "Deprecated options, which are in effect:", "", "| option | write |", "|---|---|"]
    lines += [f"| {name} | {instead} |" for name, (instead, _) in OLD.items()]
    rows = [(*key, row) for key, row in sorted(documented().items()) if row.reason]
    lines += ["", "Options without effect:", "", "| scope | option | reason |", "|---|---|---|"]
    lines += [f"| {scope} | {name} | {row.reason} |" for scope, name, row in rows if row.values is None]
    lines += ["", "Options that are not here, and the values that ask for nothing:", ""]
    lines += ["| scope | option | values | reason |", "|---|---|---|---|"]
    for scope, name, row in rows:
        if row.values is not None:
            lines.append(f"| {scope} | {name} | {', '.join(row.values) or 'empty'} | {row.reason} |")
    return "\n".join(lines) + "\n\n"


def test_the_chapter_has_each_option_without_effect_and_its_reason() -> None:
    """STABLECAST_REWRITE=1 writes the tables anew."""
    text = CHAPTER.read_text(encoding="utf-8")
    wished = BLOCK.sub(lambda found: f"{found[1]}{render()}{found[2]}", text)
    if os.environ.get("STABLECAST_REWRITE") == "1":
        CHAPTER.write_text(wished, encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == wished


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
def test_the_examples_of_the_chapter_configure_the_same_source(kind: str, text: str) -> None:
    with option_file(text, f"um.{kind}") as path:
        found = load([path], environment=False)
    assert not found.notices
    assert found.of_endpoint("source", "orders") == {
        "ume_session_id": "7",
        "ume_store": "127.0.0.1:14567,127.0.0.1:14568,127.0.0.1:14569",
        "ume_flight_size": "500",
    }
    assert found.of_context()[0] == {"resolver_unicast_daemon": "127.0.0.1:15380"}
