"""A store's clients as JSON records of its journal (spec: the journal's STATE records)."""

import json
from collections.abc import Iterable
from typing import Any

import attrs

from stablecast.core.effects import Client
from stablecast.core.errors import StablecastError
from stablecast.core.messages import Role


class RecordError(StablecastError):
    """A state record that is not one of ours; the message says what is wrong and what to do."""

    def __init__(self, what: str) -> None:
        """Something is wrong with a record."""
        super().__init__(f"{what}; start the release that wrote the journal, or a store on an empty directory")


def client_record(client: Client) -> bytes:
    """The newest state of a client."""
    return json.dumps({"client": attrs.asdict(client)}, separators=(",", ":")).encode()


def forget_record(reg_id: int) -> bytes:
    """A client is gone."""
    return json.dumps({"forget": reg_id}, separators=(",", ":")).encode()


def clients_of(records: Iterable[bytes]) -> dict[int, Client]:
    """The clients that a journal's records, in order, leave. Raises RecordError."""
    clients: dict[int, Client] = {}
    for body in records:
        record = json.loads(body)
        if "client" in record:
            client = _client(record["client"])
            clients[client.reg_id] = client
        elif "forget" in record:
            clients.pop(record["forget"], None)
        else:
            raise RecordError(f"a state record names neither client nor forget but {sorted(record)}")
    return clients


def _client(fields: dict[str, Any]) -> Client:
    try:
        lives = tuple((incarnation, first) for incarnation, first in fields.pop("lives"))
        return Client(role=Role(fields.pop("role")), lives=lives, **fields)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"a client record cannot be read: {error}") from None
