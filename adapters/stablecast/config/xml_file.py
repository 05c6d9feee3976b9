"""Reading a store's XML configuration: by the document type of its version, with line and element in each error.

External entities and the network are never read; XInclude takes local files. White space around a text goes, unless
the element keeps it (`xml:space="preserve"`).
"""

import io
import re
from pathlib import Path

from lxml import etree

from stablecast.config.daemon_outline import (
    ConfigFileError,
    Given,
    Outline,
    Place,
    Problem,
    StoreOutline,
    Text,
    TopicOutline,
)
from stablecast.config.schema import NEWEST, VERSIONS, dtd

ROOT = "ume-store"
MAX_BYTES = 4 << 20
"""Of a configuration file."""
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_XINCLUDE = "{http://www.w3.org/2001/XInclude}include"

_ABOUT = re.compile(r"(?:Element|of element|attribute [\w:-]+ of(?! element)) ([\w-]+)")

Element = etree._Element  # noqa: SLF001 - the library's stubs have no public name for it


def load(path: Path) -> Outline:
    """Read and validate a file. Raises ConfigFileError, and OSError if it cannot be read."""
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise ConfigFileError(str(path), [Problem(Place(), f"more than {MAX_BYTES} bytes: this is no configuration")])
    return parse(data, str(path))


def parse(data: bytes, where: str) -> Outline:
    """Read and validate the bytes of a file `where`. Raises ConfigFileError."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        tree = etree.parse(io.BytesIO(data), parser, base_url=where)
        _include(tree)
    except etree.XMLSyntaxError as error:
        raise ConfigFileError(where, [Problem(Place(error.lineno or 1, "xml"), error.msg or "not XML")]) from None
    except etree.XIncludeError as error:
        raise ConfigFileError(where, [Problem(Place(1, "xi:include"), str(error))]) from None
    root = tree.getroot()
    problems = _validate(root)
    if problems:
        raise ConfigFileError(where, problems)
    daemon = tuple((str(child.tag), _entry(child)) for child in root.iterfind("daemon/*"))
    return Outline(where, daemon, tuple(map(_store, root.iterfind("stores/store"))), root.get("version") != NEWEST)


def _include(tree: "etree._ElementTree[Element]") -> None:
    for include in tree.iter(_XINCLUDE):
        href = include.get("href", "")
        if "://" in href and not href.startswith("file://"):
            raise etree.XIncludeError(f"'{href}' is not a local file: only those are included")
    tree.xinclude()
    etree.cleanup_namespaces(tree)
    for element in tree.iter("*"):
        element.attrib.pop(_BASE, None)  # Where it was included from is not part of the document.


def _validate(root: Element) -> list[Problem]:
    at = Place(root.sourceline or 1, str(root.tag))
    if root.tag != ROOT:
        return [Problem(at, f"the outermost element must be <{ROOT}>")]
    version = root.get("version")
    if version not in VERSIONS:
        return [Problem(at, f"version '{version}' is not known: there are {', '.join(VERSIONS)}")]
    queues = root.find("queues")
    if queues is not None:
        return [Problem(_place(queues), "queues are not served here, only stores: take them out")]
    checker = etree.DTD(io.StringIO(dtd(version)))
    if checker.validate(root):
        return []
    errors = checker.error_log.filter_from_errors()
    return [Problem(Place(entry.line, _blamed(entry.message)), entry.message) for entry in errors]


def _blamed(message: str) -> str:
    """The element that a message of the validator is about."""
    found = _ABOUT.search(message)
    return ROOT if found is None else found[1]


def _store(element: Element) -> StoreOutline:
    return StoreOutline(
        element.get("name", ""),
        element.get("port", ""),
        element.get("interface", ""),
        _options(element),
        tuple(map(_topic, element.iterfind("topics/topic"))),
        _place(element),
        _restore_last(element),
        publishing=_publishing(element),
    )


def _topic(element: Element) -> TopicOutline:
    pattern, kind = element.get("pattern", ""), element.get("type", "direct")
    return TopicOutline(pattern, kind, _options(element), _place(element), _restore_last(element))


def _options(element: Element) -> tuple[Given, ...]:
    return tuple(
        Given(option.get("type", "store"), option.get("name", ""), option.get("value", ""), _place(option))
        for option in element.iterfind("ume-attributes/option")
    )


def _restore_last(element: Element) -> Text | None:
    found = element.find("restore-last")
    return None if found is None else _text(found)


def _entry(element: Element) -> Text:
    """An entry of the daemon; of its statistics all that stands inside, by name."""
    publishing = _publishing(element)
    inside = {str(child.tag): child.get("allow", child.text or "") for child in element if not len(child)}
    inside.pop("publishing-interval", None)
    text = _text(element)
    return Text(text.value, text.place, {**text.attributes, **inside, **(publishing.attributes if publishing else {})})


def _publishing(element: Element) -> Text | None:
    found = element.find("publishing-interval")
    if found is None:
        return None
    return Text("", _place(found), {one.get("name", ""): one.get("ivl", "") for one in found.iterfind("group")})


def _text(element: Element) -> Text:
    text = element.text or ""
    value = text if element.get(_SPACE) == "preserve" else text.strip()
    attributes = {str(name): str(given) for name, given in element.attrib.items() if name != _SPACE}
    return Text(value, _place(element), attributes)


def _place(element: Element) -> Place:
    return Place(element.sourceline or 0, str(element.tag))
