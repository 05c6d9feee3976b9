"""Machines, inputs and effects as plain JSON values and back, by schema: the annotations of the core's own classes.

Members of a union carry their class name under `_`; every other record is an object of its fields. Numbers, texts and
booleans must have the exact type of the schema. Nothing is converted on reading, so the checked values are those of the
trace. A snapshot holds the outbox only if it is not empty: after `recover`, before the first input.

A sequence of records whose fields are all numbers is one flat list of these numbers. A store has such a record for each
run of messages, and its event loop waits while a snapshot is made: the list takes an eighth of the time of objects.
"""

import types
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Union, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from stablecast.core.protocol import effects, inputs
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.inputs import Input
from stablecast.core.protocol.messages import Message, Role
from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.errors import SchemaError

Endpoint = SourceEndpoint | ReceiverSession | StoreEndpoint
"""A machine that can be traced."""

Json = dict[str, Any]
"""An object of a trace, as `json.loads` returns it."""

TAG: Final = "_"
"""The key that names the class of a union's member."""

MACHINES: Final[dict[Role, type[Endpoint]]] = {
    Role.SOURCE: SourceEndpoint,
    Role.RECEIVER: ReceiverSession,
    Role.STORE: StoreEndpoint,
}

INPUTS: Final[dict[Role, types.UnionType]] = {
    Role.SOURCE: inputs.SourceInput,
    Role.RECEIVER: inputs.ReceiverInput,
    Role.STORE: inputs.StoreInput,
}
"""The union of inputs of each kind of machine."""

_EFFECTS: Final[dict[Role, types.UnionType]] = {
    Role.SOURCE: effects.SourceEffect,
    Role.RECEIVER: effects.ReceiverEffect,
    Role.STORE: effects.StoreEffect,
}
_DAMAGE: Final = (KeyError, TypeError, ValueError, AttributeError, RecursionError, ForbiddenExtraKeysError)
"""Errors of structuring a value that does not fit its schema."""


_UNIONS: Final = (types.UnionType, Union)


def fields_of(kind: Any) -> list[tuple[str, Any]]:
    return [(field.name, field.type) for field in attrs.fields(attrs.resolve_types(kind))]


def is_union(schema: Any) -> bool:
    """Return whether it is one of several types, None among them."""
    return get_origin(schema) in _UNIONS


def members_of(schema: Any) -> list[Any]:
    """Return the types of a union, without None."""
    return [member for member in get_args(schema) if member is not types.NoneType]


def snapshot(machine: Endpoint) -> Json:
    """Return everything that decides what a machine does next, its configuration and seed included."""
    value: Json = _converter().unstructure(machine)
    return value


def restore(role: Role, value: Json) -> Endpoint:
    """Return a machine that equals the one of the snapshot.

    Raises:
        SchemaError: If the value is not a snapshot of such a machine.
    """
    machine: Endpoint = _structure(value, MACHINES[role])
    return machine


def prepare(role: Role) -> None:
    """Make the hooks for `snapshot` and `restore` of this machine now, which takes half a second."""
    machine: Any = MACHINES[role]
    _reader(machine)
    _converter().get_unstructure_hook(machine)


def encode_input(event: Input) -> Json:
    value: Json = _converter().unstructure(event, Input)
    return value


def decode_input(role: Role, value: Json) -> Input:
    """Return the input of a machine of this role.

    Raises:
        SchemaError: If the value is none.
    """
    event: Input = _structure(value, INPUTS[role])
    return event


def encode_effect(effect: Effect) -> Json:
    value: Json = _converter().unstructure(effect, Effect)
    return value


def decode_effects(role: Role, values: list[Json]) -> list[Effect]:
    """Return the effects of a machine of this role.

    Raises:
        SchemaError: If a value is none.
    """
    union = _EFFECTS[role]
    return [_structure(value, union) for value in values]


def _structure(value: object, schema: Any) -> Any:
    try:
        return _reader(schema)(value, schema)
    except _DAMAGE as error:
        name = getattr(schema, "__name__", "record")
        raise SchemaError(f"not a {name}: {type(error).__name__}: {error}") from error


@cache
def _reader(schema: Any) -> Callable[[object, Any], Any]:
    return _converter().get_structure_hook(schema)


def _same(value: object, kind: type) -> object:
    """Return a value of exactly this type, else raise TypeError."""
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


def _number(value: object, kind: type) -> object:
    """Return an int, or a member of an enum of ints."""
    return _same(value, int) if kind is int else kind(_same(value, int))


def _tag_union(converter: Converter, union: types.UnionType) -> None:
    """Register hooks that tag members of the union with their class name. Tag unions inside its members first."""
    members = {member.__name__: (member, converter.get_structure_hook(member)) for member in get_args(union)}
    writers = {member: converter.get_unstructure_hook(member) for member, _ in members.values()}

    def unstructure(value: object) -> Json:
        kind = type(value)
        return {TAG: kind.__name__, **writers[kind](value)}

    def structure(value: Json, _: object) -> object:
        fields = value.copy()
        member, reader = members[fields.pop(TAG)]
        return reader(fields, member)

    converter.register_unstructure_hook_func(lambda kind: kind == union, unstructure)
    converter.register_structure_hook_func(lambda kind: kind == union, structure)


def _is_table(kind: object) -> bool:
    """Return whether this is a dict with int keys, because JSON knows only text keys."""
    return get_origin(kind) is dict and get_args(kind)[0] is int


def _write_table(kind: Any, converter: Converter) -> Callable[[dict[int, Any]], Json]:
    write = converter.get_unstructure_hook(get_args(kind)[1])
    return lambda table: {str(key): write(value) for key, value in table.items()}


def _read_table(kind: Any, converter: Converter) -> Callable[[Json, object], dict[int, Any]]:
    schema = get_args(kind)[1]
    read = converter.get_structure_hook(schema)

    def structure(value: Json, _: object) -> dict[int, Any]:
        table = {int(key): read(item, schema) for key, item in value.items()}
        if [str(key) for key in table] != list(value):
            raise ValueError("keys are not numbers in their plain form")
        return table

    return structure


def _has_tuple_keys(kind: object) -> bool:
    """Return whether this is a dict with tuples as keys. JSON gets its pairs, and an empty object for no pair."""
    return get_origin(kind) is dict and get_origin(get_args(kind)[0]) is tuple


def _write_pairs(kind: Any, converter: Converter) -> Callable[[dict[Any, Any]], Json | list[list[Any]]]:
    write_key, write = map(converter.get_unstructure_hook, get_args(kind))
    return lambda table: [[write_key(key), write(value)] for key, value in table.items()] or {}


def _read_pairs(kind: Any, converter: Converter) -> Callable[[Any, object], dict[Any, Any]]:
    key_schema, schema = get_args(kind)
    read_key, read = converter.get_structure_hook(key_schema), converter.get_structure_hook(schema)

    def structure(pairs: Any, _: object) -> dict[Any, Any]:
        table = {read_key(key, key_schema): read(value, schema) for key, value in pairs}
        if len(table) != len(pairs):
            raise ValueError("a key comes twice")
        return table

    return structure


def _columns(kind: object) -> list[str]:
    """Return the fields of a sequence's records if all are numbers, else an empty list."""
    if get_origin(kind) not in (list, deque) or not attrs.has(record := get_args(kind)[0]):
        return []
    fields = fields_of(record)
    return [name for name, _ in fields] if len(fields) > 1 and all(schema is int for _, schema in fields) else []


def _write_rows(kind: Any) -> Callable[[Iterable[Any]], list[int]]:
    fields = attrgetter(*_columns(kind))
    return lambda rows: list(chain.from_iterable(map(fields, rows)))


def _read_rows(kind: Any) -> Callable[[list[int], object], Any]:
    container, record, width = get_origin(kind), get_args(kind)[0], len(_columns(kind))

    def structure(values: list[int], _: object) -> Any:
        if type(values) is not list or len(values) % width or any(type(value) is not int for value in values):
            raise ValueError(f"not numbers of {record.__name__}, {width} each")
        numbers = iter(values)
        return container(map(record, *[numbers] * width))

    return structure


@cache
def _converter() -> Converter:
    """Make the converter on first use: an endpoint that is not traced does not pay for it."""
    converter = Converter(
        detailed_validation=False, forbid_extra_keys=True, unstruct_collection_overrides={deque: list, tuple: list}
    )
    converter.register_structure_hook(int, _number)
    converter.register_structure_hook(str, _same)
    converter.register_structure_hook(bool, _same)
    converter.register_unstructure_hook_factory(_is_table, _write_table)
    converter.register_structure_hook_factory(_is_table, _read_table)
    converter.register_unstructure_hook_factory(_has_tuple_keys, _write_pairs)
    converter.register_structure_hook_factory(_has_tuple_keys, _read_pairs)
    converter.register_unstructure_hook_factory(lambda kind: bool(_columns(kind)), _write_rows)
    converter.register_structure_hook_factory(lambda kind: bool(_columns(kind)), _read_rows)
    for union in (Message, Event, Input, Effect, *INPUTS.values(), *_EFFECTS.values()):
        _tag_union(converter, union)
    for machine in MACHINES.values():
        write = make_dict_unstructure_fn(machine, converter, outbox=override(omit_if_default=True))
        read = make_dict_structure_fn(machine, converter)
        converter.register_unstructure_hook(machine, write)
        converter.register_structure_hook(machine, read)
    return converter
