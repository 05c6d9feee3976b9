"""XML configuration files: read safely and validated, with line and element of each problem.

External entities and the network are never read.
"""

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lxml import etree

from stablecast.config.findings import ConfigFileError, ConfigPlace, ConfigProblem, read_bytes
from stablecast.text import nearest

_BASE = "{http://www.w3.org/XML/1998/namespace}base"
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
"""The attribute that keeps the blanks around a text."""
_XSD_ELEMENT = "{http://www.w3.org/2001/XMLSchema}element"
_XINCLUDE = "{http://www.w3.org/2001/XInclude}include"
_OLD_XINCLUDE = "{http://www.w3.org/2003/XInclude}include"
"""The same in the name space of a draft, with which the documentation of routers writes it."""
_ABOUT = re.compile(r"(?:Element|of element|attribute [\w:-]+ of(?! element)) '?([\w-]+)")
"""The element that a message of a validator is about."""

_UNKNOWN_ELEMENT = re.compile(r"No declaration for element ([\w:-]+)")
_UNKNOWN_ATTRIBUTE = re.compile(r"No declaration for attribute ([\w:-]+) of element ([\w:-]+)")
_INDEX = re.compile(r"\[(\d+)\]")
_UNEXPECTED = re.compile(r"Element '([\w:-]+)': This element is not expected")
"""Messages of validators about names that the schema does not have."""

Element = etree._Element  # noqa: SLF001 - the library's stubs have no public name for it


class NamedSchema:
    """An XML Schema that knows the names of its elements, which the library does not return."""

    def __init__(self, text: str) -> None:
        tree = etree.parse(io.BytesIO(text.encode()))
        self.names = sorted({str(one.get("name")) for one in tree.iter(_XSD_ELEMENT) if one.get("name")})
        self._schema = etree.XMLSchema(tree)

    @property
    def error_log(self) -> Any:
        return self._schema.error_log

    def validate(self, tree: Any) -> bool:
        return self._schema.validate(tree)


Schema = etree.DTD | NamedSchema
"""A schema of a document."""


def parse(data: bytes, where: str) -> Element:
    """Return the root of the document, with included local files (XInclude). Raises ConfigFileError."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        tree = etree.parse(io.BytesIO(data), parser, base_url=where)
        _include(tree)
    except etree.XMLSyntaxError as error:
        place = ConfigPlace(error.lineno or 1, "xml")
        raise ConfigFileError(where, [ConfigProblem(place, error.msg or "not XML")]) from None
    except etree.XIncludeError as error:
        raise ConfigFileError(where, [ConfigProblem(ConfigPlace(1, "xi:include"), str(error))]) from None
    return tree.getroot()


def validate(root: Element, schema: Schema, where: str) -> None:
    """Validate a document. Raises ConfigFileError with all errors of the schema."""
    if not schema.validate(root):
        errors = schema.error_log.filter_from_errors()
        raise ConfigFileError(where, [_problem(entry, root, schema) for entry in errors])


def load(path: Path, schema: Schema) -> Element:
    """Return the root of a valid file without a document type of its own. Raises ConfigFileError and OSError."""
    root = parse_plain(path)
    validate(root, schema, str(path))
    return root


def parse_plain(path: Path) -> Element:
    """Return the root of a file without a document type of its own. Raises ConfigFileError and OSError."""
    root = parse(read_bytes(path), str(path))
    if root.getroottree().docinfo.internalDTD is not None:
        text = "a document type is not accepted: leave out <!DOCTYPE>"
        raise ConfigFileError(str(path), [ConfigProblem(ConfigPlace(1, "!DOCTYPE"), text)])
    return root


def text_of(element: Element) -> str:
    """Return the text of an element without the blanks around it."""
    return (element.text or "").strip()


def kept_text(element: Element) -> str:
    """Return the text of an element, with the blanks around it if the element keeps them (`xml:space`)."""
    return (element.text or "") if element.get(SPACE) == "preserve" else text_of(element)


def attributes_of(element: Element) -> Mapping[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


def place_of(element: Element) -> ConfigPlace:
    """Return the line and the name of an element; of one that is made from tables, the keys that lead to it."""
    if not element.sourceline:
        return ConfigPlace(0, _keys(element.getroottree().getpath(element)))
    return ConfigPlace(element.sourceline, str(element.tag))


def _keys(path: str) -> str:
    """Return `portals.endpoint.1.cost` for `/tnw-gateway/portals/endpoint[2]/cost`."""
    return ".".join(_INDEX.sub(lambda found: f".{int(found[1]) - 1}", part) for part in path.split("/")[2:])


def _problem(entry: Any, root: Element, schema: Schema) -> ConfigProblem:
    about = _ABOUT.search(entry.message)
    remedy = _remedy(entry.message, schema)
    text = f"{entry.message}: {remedy}" if remedy else entry.message
    if not entry.line and entry.path:
        return ConfigProblem(ConfigPlace(0, _keys(entry.path)), text)
    return ConfigProblem(ConfigPlace(entry.line, str(root.tag) if about is None else about[1]), text)


def _remedy(message: str, schema: Schema) -> str:
    """Return the question for the nearest name that the schema has, for a message about an unknown name."""
    if (unexpected := _UNEXPECTED.search(message)) is not None:
        return nearest(unexpected[1], schema.names if isinstance(schema, NamedSchema) else ())
    declared = list(schema.iterelements()) if isinstance(schema, etree.DTD) else []
    if (attribute := _UNKNOWN_ATTRIBUTE.search(message)) is not None:
        of_element = (one for one in declared if one.name == attribute[2])
        return nearest(attribute[1], [str(one.name) for element in of_element for one in element.iterattributes()])
    if (element := _UNKNOWN_ELEMENT.search(message)) is not None:
        return nearest(element[1], [str(one.name) for one in declared])
    return ""


def _include(tree: "etree._ElementTree[Element]") -> None:
    for include in tree.iter(_XINCLUDE, _OLD_XINCLUDE):
        include.tag = _XINCLUDE
        href = include.get("href", "")
        if "://" in href and not href.startswith("file://"):
            raise etree.XIncludeError(f"'{href}' is not a local file: only those are included")
    tree.xinclude()
    etree.cleanup_namespaces(tree)
    for element in tree.iter("*"):
        element.attrib.pop(_BASE, None)  # The file that it was included from is not part of the document.
