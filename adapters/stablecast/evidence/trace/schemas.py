"""What annotations of the core's own classes say: what `lines` and `reading` make their functions of."""

import types
from typing import Any, Final, Union, get_args, get_origin

import attrs

_UNIONS: Final = (types.UnionType, Union)


def fields_of(kind: Any) -> list[tuple[str, Any]]:
    """Name and type of each field of a record."""
    return [(field.name, field.type) for field in attrs.fields(attrs.resolve_types(kind))]


def is_union(schema: Any) -> bool:
    """Whether it is one of several types, None among them."""
    return get_origin(schema) in _UNIONS


def members_of(schema: Any) -> list[Any]:
    """The types of a union, None apart."""
    return [member for member in get_args(schema) if member is not types.NoneType]
