"""XML configuration: read safely, validated, with the line and the element of whatever is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from lxml import etree

from stablecast.core.errors import StablecastError

MAX_BYTES = 1 << 20
"""Bytes of a configuration file."""


class XmlConfigError(StablecastError):
    """A configuration that cannot be used; the message names file, line and element."""


class Schema(Protocol):
    """A DTD or an XML Schema."""

    @property
    def error_log(self) -> Any:
        """What is wrong, the first first."""

    def validate(self, tree: Any) -> bool:
        """Whether a document is as it says."""


def read(path: Path, schema: Schema) -> Any:
    """The root element of a file that is as the schema says.

    Raises:
        XmlConfigError: If it is no XML, or not as the schema says.
        OSError: If it cannot be read.
    """
    with path.open("rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise XmlConfigError(f"{path} has more than {MAX_BYTES} bytes: that is no configuration")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise XmlConfigError(f"{path}, line {error.lineno}: this is no XML: {error.msg}") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise XmlConfigError(f"{path}, line 1: a document type is not taken: leave out <!DOCTYPE>")
    if not schema.validate(root):
        first = schema.error_log[0]
        raise XmlConfigError(f"{path}, line {first.line}: {_plain(first.message)}")
    return root


def text_of(element: Any) -> str:
    """What stands between its tags, without blanks around it."""
    return (element.text or "").strip()


def fail(path: Path, element: Any, reason: str) -> XmlConfigError:
    """The error of an element whose form is right and whose value is not."""
    return XmlConfigError(f"{path}, line {element.sourceline}: element {element.tag}: {reason}")


def whole(path: Path, element: Any, low: int, high: int) -> int:
    """The whole number in an element. Raises XmlConfigError."""
    text = text_of(element)
    if not text.isdecimal() or not low <= int(text) <= high:
        raise fail(path, element, f"'{text}' is no whole number from {low} to {high}")
    return int(text)


def checked(path: Path, element: Any, read_value: Callable[[str], Any], text: str) -> Any:
    """What a reader makes of a text; what it raises names the element. Raises XmlConfigError."""
    try:
        return read_value(text)
    except (StablecastError, ValueError) as error:
        raise fail(path, element, str(error)) from error


def _plain(message: str) -> str:
    """The library's words, without its namespace braces."""
    return message.replace("{}", "")
