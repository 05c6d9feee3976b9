"""A store's clients as JSON records of its journal (spec: the journal's STATE records).

A field with its default value is not written. Therefore records of earlier formats, without later fields, can be read.
"""

import json
from collections.abc import Iterable
from enum import IntEnum
from functools import cache, lru_cache
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, Final

import attrs
from cattrs import Converter
from cattrs.errors import ForbiddenExtraKeysError

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import StoreMemory
from stablecast.text.json_text import from_json

_text = json.JSONEncoder(separators=(",", ":")).encode
"""`json.dumps` with separators makes an encoder for each call, and each acknowledgement has a record."""


_NAMES: Final = tuple(field.name for field in attrs.fields(Client))
_USUAL: Final = tuple(field.default for field in attrs.fields(Client))
_values_of: Final = attrgetter(*_NAMES)


MAX_TEXTS: Final = 1_024
"""Values of clients that are kept as JSON, because each record of a client repeats most of them."""


class Waiting(IntEnum):
    """The reason why a store grants nothing at first. It stays in the journal until the time has passed.

    Clients may count on grants that the store does not know. A restart within the time must not end it.
    """

    NONE = 0
    REQUIRED = 1
    """An operator declared the directory, or the store found that its journal lacks something."""
    UNLESS_NEW = 2
    """There was no journal. A start with `--new` declares that nobody counts on the store."""


class RecordError(StablecastError):
    """A state record that this release cannot read. The text names the fault and the remedy."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; start the release that wrote the journal, or a store on an empty directory")


def client_record(client: Client) -> bytes:
    # Each acknowledgement has a record, and few fields of a receiver differ from their defaults. Most values are the
    # very objects that are the defaults, and those cost no step here. A converter would look at all fields.
    fields: list[str] = []
    values = _values_of(client)
    for name, value, usual in compress(zip(_NAMES, values, _USUAL, strict=True), map(is_not, values, _USUAL)):
        if value != usual:
            text = str(value) if type(value) is int else _text_of(value)
            fields.append(f'"{name}":{text}')
    return f'{{"client":{{{",".join(fields)}}}}}'.encode()


@lru_cache(maxsize=MAX_TEXTS, typed=True)
def _text_of(value: object) -> str:
    return _text(_converter().unstructure(value))


def forget_record(reg_id: int) -> bytes:
    return _text({"forget": reg_id}).encode()


def memory_record(
    memory: StoreMemory, generation: int = 0, waiting: Waiting = Waiting.NONE, wait_ns: int | None = None
) -> bytes:
    """Return the record of what a store knows of the time before its journal, and of its generation.

    Unless `waiting` is NONE, the next start has no memory and grants nothing for `wait_ns`, None: for the whole time.
    """
    record: dict[str, int] = {"memory": memory}
    if generation:
        record["generation"] = generation
    if waiting:
        record["declared"] = waiting
    if waiting and wait_ns is not None:
        record["wait_ns"] = wait_ns
    return _text(record).encode()


def generation_of(records: Iterable[bytes]) -> tuple[int, Waiting, int | None]:
    """Return the newest generation, whether the next start grants nothing at first, and what is left of that (ns).

    Raises:
        RecordError: A record has an unknown value.
    """
    generation, waiting, wait_ns = 0, Waiting.NONE, None
    for record in map(_record, records):
        if "memory" in record:
            generation, wait_ns = record.get("generation", generation), record.get("wait_ns")
            try:
                waiting = Waiting(record.get("declared", Waiting.NONE))
            except (TypeError, ValueError) as error:
                raise RecordError(f"a record of the store's memory cannot be read: {error}") from None
    if not isinstance(generation, int):
        raise RecordError(f"a record of the store's memory has the generation {generation!r}")
    if not (wait_ns is None or (isinstance(wait_ns, int) and wait_ns >= 0)):
        raise RecordError(f"a record of the store's memory has the time {wait_ns!r}")
    return generation, waiting, wait_ns


def memory_of(records: Iterable[bytes]) -> StoreMemory:
    """Return what the store knows of the time before its journal; one without a record kept everything.

    Raises:
        RecordError: A record has an unknown value.
    """
    memory = StoreMemory.KEPT
    for record in map(_record, records):
        if "memory" in record:
            try:
                memory = StoreMemory(record["memory"])
            except (TypeError, ValueError) as error:
                raise RecordError(f"a record of the store's memory cannot be read: {error}") from None
    return memory


def clients_of(records: Iterable[bytes]) -> dict[int, Client]:
    """Return the clients after all records of a journal, in order. Raises RecordError."""
    clients: dict[int, Client] = {}
    for record in map(_record, records):
        if "client" in record:
            client = _client(record["client"])
            clients[client.reg_id] = client
        elif isinstance(record.get("forget"), int):
            clients.pop(record["forget"], None)
        elif "memory" in record:
            pass  # `memory_of` reads it.
        else:
            raise RecordError(f"a state record names neither client nor forget but {sorted(record)}")
    return clients


def _record(body: bytes) -> dict[str, Any]:
    """Return a record. Only the checksum of a journal is sure: another program may have written it."""
    try:
        record = from_json(body)
    except ValueError as error:
        raise RecordError(f"a state record is no JSON: {error}") from None
    if not isinstance(record, dict):
        raise RecordError(f"a state record is no object but {type(record).__name__}")
    return record


def _client(fields: Any) -> Client:
    try:
        return _converter().structure(fields, Client)
    except (AttributeError, KeyError, TypeError, ValueError, ForbiddenExtraKeysError) as error:
        raise RecordError(f"a client record cannot be read: {type(error).__name__}: {error}") from None


@cache
def _converter() -> Converter:
    return Converter(detailed_validation=False, forbid_extra_keys=True, omit_if_default=True)
