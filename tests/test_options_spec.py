"""The option chapter of the specification says what the option table says."""

import os

import attrs

from stablecast.config.options import SCOPES, Config, Option
from stablecast.core.settings import ReceiverConfig, SourceConfig, StoreConfig
from stablecast.core.units import MILLISECOND
from tests.support.tree import ROOT

CHAPTER = ROOT / "spec" / "options.md"
INTRODUCTION = """# Options

Documented names, as `options={"name": value}` in Python and `--option name=value` on the command line. Defaults are
those of the profile `safe`. This chapter is made from the option table;
`STABLECAST_REWRITE=1 pytest tests/test_options_spec.py` writes it again.
"""
DEFAULTS: dict[str, Config] = {
    "source": SourceConfig("topic", 0, "", ""),
    "receiver": ReceiverConfig("topic", 0, ""),
    "store": StoreConfig("", 0),
}


def default(scope: str, option: Option) -> str:
    """The default in the option's own unit."""
    value: object = DEFAULTS[scope]
    for part in option.field.split("."):
        value = getattr(value, part)
    if option.name == "ume_use_ack_batching":
        return "1"
    if isinstance(value, bool):
        return str(int(value))
    if hasattr(value, "name"):
        return str(value.name).lower()
    assert isinstance(value, int)
    return str(value // MILLISECOND if option.unit == "ms" else value)


def render() -> str:
    """The chapter."""
    lines = [INTRODUCTION]
    for scope, options in SCOPES.items():
        lines += [f"## {scope}\n", "| option | unit | default | meaning |", "|---|---|---|---|"]
        lines += [f"| {o.name} | {o.unit} | {default(scope, o)} | {o.summary} |" for o in options]
        lines.append("")
    return "\n".join(lines)


def test_the_chapter_is_the_table() -> None:
    if os.environ.get("STABLECAST_REWRITE") == "1":
        CHAPTER.write_text(render(), encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == render()


def test_every_option_sets_a_field() -> None:
    for scope, options in SCOPES.items():
        names = {field.name for field in attrs.fields(type(DEFAULTS[scope]))}
        assert {option.field.split(".")[0] for option in options} <= names
