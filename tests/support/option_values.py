"""The values of options as the chapters show them: the inverse of setting an option."""

import ipaddress
from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from stablecast.config import option_kinds as kinds
from stablecast.config.option import Option
from stablecast.core.protocol.messages import UNSET
from stablecast.core.protocol.settings import AckMode, Notification, SourceConfig

TYPES: Mapping[type, str] = {
    kinds.NumberKind: "number",
    kinds.ChoiceKind: "choice",
    kinds.FlagKind: "flag",
    kinds.AddressKind: "address",
    kinds.TextKind: "text",
    kinds.AckModeKind: "flag",
    kinds.ConfirmationsKind: "choice",
    kinds.ListKind: "list",
}


def type_of(kind: kinds.OptionKind) -> str:
    return TYPES[type(kind)]


def unit_of(kind: kinds.OptionKind) -> str:
    """Return the unit of a value, empty if it has none."""
    return kind.unit if isinstance(kind, kinds.NumberKind) else ""


def show(option: Option, config: Any) -> str:
    """Return the value of an option in a configuration; empty for an option of another configuration."""
    if option.field is None:
        return ""
    for part in option.path:
        config = getattr(config, part)
    return value_of(option.kind, config)


@singledispatch
def value_of(kind: Any, field: Any) -> str:
    """Return the value of this kind that gives this field."""
    raise NotImplementedError(kind)


@value_of.register
def _(kind: kinds.NumberKind, field: int) -> str:
    return "unset" if field == UNSET else str(field // kind.factor)


@value_of.register
def _(kind: kinds.ChoiceKind, field: object) -> str:
    return next(word for word, meaning in kind.words if meaning == field)


@value_of.register
def _(_: kinds.FlagKind, field: bool) -> str:
    return str(int(field))


@value_of.register
def _(kind: kinds.AddressKind, field: str | int) -> str:
    return str(ipaddress.IPv4Address(field or kind.empty))


@value_of.register
def _(_: kinds.TextKind, field: object) -> str:
    return str(field)


@value_of.register
def _(kind: kinds.AckModeKind, field: AckMode) -> str:
    return str(int(field is kind.mode))


@value_of.register
def _(_: kinds.ConfirmationsKind, field: SourceConfig) -> str:
    return value_of(kinds.LEVELS, field.confirmed_notification if field.confirmations else Notification.NONE)


@value_of.register
def _(_: kinds.ListKind, field: object) -> str:
    return ""  # Lists start empty, and the text of their entries is not kept.
