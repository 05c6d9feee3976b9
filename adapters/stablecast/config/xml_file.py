"""The XML configuration of a store daemon, validated by the document type of its version.

Blanks around a text are removed, unless the element keeps them (`xml:space="preserve"`).
"""

import io
from pathlib import Path

from lxml import etree

from stablecast.config.daemon_outline import ConfigEntry, Given, Outline, StoreOutline, TopicOutline
from stablecast.config.findings import ConfigFileError, ConfigProblem, read_bytes
from stablecast.config.schema import NEWEST, VERSIONS, dtd
from stablecast.config.xml_reader import SPACE, Element, attributes_of, kept_text, place_of, validate
from stablecast.config.xml_reader import parse as parse_xml

ROOT = "ume-store"


def load(path: Path) -> Outline:
    """Read and validate a file. Raises ConfigFileError, and OSError if it cannot be read."""
    return parse(read_bytes(path), str(path))


def parse(data: bytes, where: str) -> Outline:
    """Parse and validate the bytes of a file `where`. Raises ConfigFileError."""
    root = parse_xml(data, where)
    problem = _unsupported(root)
    if problem is not None:
        raise ConfigFileError(where, [problem])
    validate(root, etree.DTD(io.StringIO(dtd(root.get("version", "")))), where)
    daemon = tuple((str(child.tag), _daemon_entry(child)) for child in root.iterfind("daemon/*"))
    return Outline(where, daemon, tuple(map(_store, root.iterfind("stores/store"))), root.get("version") != NEWEST)


def _unsupported(root: Element) -> ConfigProblem | None:
    """Return the problem of a document that no document type here covers."""
    version, queues = root.get("version"), root.find("queues")
    if root.tag != ROOT:
        return ConfigProblem(place_of(root), f"the outermost element must be <{ROOT}>")
    if version not in VERSIONS:
        return ConfigProblem(place_of(root), f"version '{version}' is not known: there are {', '.join(VERSIONS)}")
    if queues is not None:
        return ConfigProblem(place_of(queues), "queues are not served here, only stores: take them out")
    return None


def _store(element: Element) -> StoreOutline:
    return StoreOutline(
        name=element.get("name", ""),
        port=element.get("port", ""),
        interface=element.get("interface", ""),
        options=_options(element),
        topics=tuple(map(_topic, element.iterfind("topics/topic"))),
        place=place_of(element),
        restore_last=_restore_last(element),
        publishing=_publishing(element),
    )


def _topic(element: Element) -> TopicOutline:
    pattern, kind = element.get("pattern", ""), element.get("type", "direct")
    return TopicOutline(pattern, kind, _options(element), place_of(element), _restore_last(element))


def _options(element: Element) -> tuple[Given, ...]:
    return tuple(
        Given(option.get("type", "store"), option.get("name", ""), option.get("value", ""), place_of(option))
        for option in element.iterfind("ume-attributes/option")
    )


def _restore_last(element: Element) -> ConfigEntry | None:
    found = element.find("restore-last")
    return None if found is None else entry_of(found)


def _daemon_entry(element: Element) -> ConfigEntry:
    """Return an entry of the daemon; the elements inside `daemon-monitor` become attributes."""
    publishing = _publishing(element)
    inside = {str(child.tag): child.get("allow", child.text or "") for child in element if not len(child)}
    inside.pop("publishing-interval", None)
    entry = entry_of(element)
    own = publishing.attributes if publishing else {}
    return ConfigEntry(entry.value, entry.place, {**entry.attributes, **inside, **own})


def _publishing(element: Element) -> ConfigEntry | None:
    found = element.find("publishing-interval")
    if found is None:
        return None
    return ConfigEntry(
        "", place_of(found), {one.get("name", ""): one.get("ivl", "") for one in found.iterfind("group")}
    )


def entry_of(element: Element) -> ConfigEntry:
    attributes = {name: value for name, value in attributes_of(element).items() if name != SPACE}
    return ConfigEntry(kept_text(element), place_of(element), attributes)
