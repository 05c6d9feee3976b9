"""One option of the table, and how it changes a configuration."""

from typing import Any

import attrs

from stablecast.config.option_kinds import Kind, Value


@attrs.frozen
class Option:
    """One option.

    Attributes:
        name: Its documented name.
        field: The configuration field (dotted) that it sets; empty: the configuration as a whole; None: it belongs to
            another configuration, and is read, checked, and passed over here.
        kind: How its value is read.
        summary: What it means.
        relation: What other options have to do with it.
    """

    name: str
    field: str | None
    kind: Kind
    summary: str
    relation: str = ""

    @property
    def path(self) -> list[str]:
        """The field, by its parts."""
        return self.field.split(".") if self.field else []

    def set(self, config: Any, value: Value) -> Any:
        """The configuration with the option set. Raises OptionError, and for lists what their entries raise."""
        if self.field is None:
            self.kind.merge(self.name, None, value)
            return config
        return _set(config, self.path, lambda before: self.kind.merge(self.name, before, value))

    def show(self, config: Any) -> str:
        """The value that the option has in a configuration; empty where it belongs to another."""
        if self.field is None:
            return ""
        for part in self.path:
            config = getattr(config, part)
        return self.kind.show(config)

    def elsewhere(self) -> "Option":
        """The same option where it is only passed over."""
        return attrs.evolve(self, field=None)

    def below(self, field: str) -> "Option":
        """The same option of a configuration that has the one it is for in a field."""
        return self if self.field is None else attrs.evolve(self, field=f"{field}.{self.field}")


def _set(config: Any, path: list[str], merge: Any) -> Any:
    if not path:
        return merge(config)
    inner = _set(getattr(config, path[0]), path[1:], merge)
    return attrs.evolve(config, **{path[0]: inner})
