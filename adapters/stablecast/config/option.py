"""One option of the table, and the change that it makes to a configuration."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from stablecast.config.option_kinds import OptionKind, Value

ConfigT = TypeVar("ConfigT")


@attrs.frozen
class Option:
    """One option.

    Attributes:
        name: Documented name.
        field: Configuration field (dotted) that it sets; empty: the configuration as a whole; None: a field of another
            configuration, so that the value is checked here and not set.
        kind: Kind of its value.
        summary: Meaning, for people.
        relation: Relation to other options, for people.
    """

    name: str
    field: str | None
    kind: OptionKind
    summary: str
    relation: str = ""

    @property
    def path(self) -> list[str]:
        """Return the parts of the field's dotted name."""
        return self.field.split(".") if self.field else []

    def set(self, config: Any, value: Value) -> Any:
        """Return the configuration with the option set. Raises OptionError, and what the entries of a list raise."""
        if self.field is None:
            self.kind.merge(self.name, None, value)
            return config
        return _set(config, self.path, lambda before: self.kind.merge(self.name, before, value))

    def elsewhere(self) -> "Option":
        """Return the option for a configuration in which its value is checked and not set."""
        return attrs.evolve(self, field=None)

    def below(self, field: str) -> "Option":
        """Return the option for a configuration that has its own configuration in `field`."""
        return self if self.field is None else attrs.evolve(self, field=f"{field}.{self.field}")


_DECLARED: Final = "option"
"""The key of an option in the metadata of the field that it sets."""


def option_field(name: str, kind: OptionKind, summary: str, default: Any, relation: str = "") -> Any:
    """Return a field of a configuration class that an option sets, so that both are declared in one place."""
    return attrs.field(default=default, metadata={_DECLARED: Option(name, None, kind, summary, relation)})


def options_of(config: type, field: str = "") -> dict[str, Option]:
    """Return the options by name that the fields of a class declare; of the class of a (dotted) `field` of it, if any.

    They are in the order of the fields, and set the configuration `config`.
    """
    kind: Any = config
    for part in field.split(".") if field else ():
        kind = attrs.fields_dict(kind)[part].type
    found = {one.name: one.metadata[_DECLARED] for one in attrs.fields(kind) if _DECLARED in one.metadata}
    return {one.name: attrs.evolve(one, field=f"{field}.{name}".lstrip(".")) for name, one in found.items()}


def set_known(
    table: Iterable[Option], config: ConfigT, options: Mapping[str, Value]
) -> tuple[ConfigT, dict[str, Value]]:
    """Return the configuration with the options of the table set, and the other options. Raises OptionError."""
    known = {option.name: option for option in table}
    for name, value in options.items():
        if name in known:
            config = known[name].set(config, value)
    return config, {name: value for name, value in options.items() if name not in known}


def _set(config: Any, path: list[str], merge: Any) -> Any:
    if not path:
        return merge(config)
    inner = _set(getattr(config, path[0]), path[1:], merge)
    return attrs.evolve(config, **{path[0]: inner})
