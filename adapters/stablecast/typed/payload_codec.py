"""Objects of one type as payloads, and back: JSON or MessagePack, by msgspec, or by pydantic for its own models."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec

from stablecast.client import PayloadError

T = TypeVar("T")


class PayloadFormat(Enum):
    """The encoding of an object in a payload."""

    JSON = "json"
    MSGPACK = "msgpack"


class PayloadCodec(Generic[T]):
    """Convert objects of one type to bytes and back."""

    def __init__(self, type_: type[T], format_: PayloadFormat = PayloadFormat.JSON) -> None:
        """Prepare the conversion. Raises TypeError if the type cannot be converted."""
        self.schema = _schema_of(type_)
        model: Any = type_
        self._encode: Callable[[T], bytes]
        self._decode: Callable[[bytes], T]
        if hasattr(model, "model_validate"):
            self._use_pydantic(model, format_)
        elif format_ is PayloadFormat.JSON:
            self._encode, self._decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(type_).decode
        else:
            self._encode, self._decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(type_).decode

    def _use_pydantic(self, model: Any, format_: PayloadFormat) -> None:
        if format_ is PayloadFormat.JSON:
            self._encode = lambda value: value.model_dump_json().encode()  # type: ignore[attr-defined]
            self._decode = model.model_validate_json
        else:
            self._encode = lambda value: msgspec.msgpack.encode(value.model_dump(mode="json"))  # type: ignore[attr-defined]
            self._decode = lambda payload: model.model_validate(msgspec.msgpack.decode(payload))

    def encode(self, value: T) -> bytes:
        """Return the payload of an object. Raises TypeError if a part of it cannot be converted."""
        return self._encode(value)

    def decode(self, payload: bytes, schema: object = None) -> T:
        """Return the object in a payload.

        Args:
            payload: The bytes.
            schema: The schema that its message names, None for none.

        Raises:
            PayloadError: The message names another schema, or the bytes are no such object.
        """
        if schema not in (None, self.schema):
            raise PayloadError(f"it has the schema '{schema}', and '{self.schema}' is read here")
        try:
            return self._decode(payload)
        except (ValueError, msgspec.MsgspecError) as error:  # pydantic's errors are of the first kind
            raise PayloadError(f"it is no {self.schema}: {error}") from error


def _schema_of(type_: Any) -> str:
    """Return the name of a type, without its module: programs in other languages have none."""
    return str(getattr(type_, "__name__", None) or type_)
