"""JSON that a file, a peer or a person wrote."""

import json
from typing import Any


def from_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is none, or is nested too deep for the parser."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
