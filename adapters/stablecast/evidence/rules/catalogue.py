"""The catalogue of invariants, each declared once in `catalogue.toml`.

Judges keep implementations of their own and register for rules in `judges`. A rule has one meaning for all of them; a
judge may see only a part of it.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from stablecast.evidence.rules.rule import InvariantRule, ModelProperty
from stablecast.runtime import machine

TABLES: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    machine.installed_file(Path(__file__).with_name("catalogue.toml")).decode()
)

PROPERTIES: Final = tuple(ModelProperty(path, **stated) for path, stated in TABLES["properties"].items())
"""The properties of the TLA+ models: each states a rule, and names the mechanism that keeps it."""


def _rule(id_: str, declared: Mapping[str, str]) -> InvariantRule:
    """Return a declared rule. A rule that models alone judge has name and statement of its property."""
    stated = next((one for one in PROPERTIES if one.rule == id_), None)
    common = {} if stated is None else {"name": stated.name, "statement": stated.statement, "remedy": "{model}"}
    fields = {**common, **declared}
    return InvariantRule(id_, **{**fields, "remedy": fields["remedy"].format_map(TABLES["remedies"])})


RULES: Final[Mapping[str, InvariantRule]] = {id_: _rule(id_, one) for id_, one in TABLES["rules"].items()}
"""Rules by id, in the order of the spec."""
