"""TOML tables as the tree of an XML file, so that one reader and one document type serve both forms.

A key is an attribute of its element if the document type declares one of that name, else an element inside it. `path`
or `address` is the text of an element whose content is only text. A list is several elements.
"""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import attrs
from lxml import etree

from stablecast.config.findings import ConfigFindings, ConfigPlace
from stablecast.config.option_kinds import plain
from stablecast.config.toml_file import read
from stablecast.config.xml_reader import Element, place_of

TEXTS = ("path", "address")
"""Keys for the text of an element that holds only text beside its attributes."""

MAX_DEPTH = 16
"""Most tables within each other; dotted keys nest without end."""


def load(path: Path, root: str, schema: "etree.DTD") -> Element:
    """Return the tree of a file below the element `root`. Raises ConfigFileError, and OSError if it cannot be read."""
    declared = {str(one.name): {str(each.name) for each in one.iterattributes()} for one in schema.iterelements()}
    texts = {str(one.name) for one in schema.iterelements() if one.content is not None and one.content.type == "pcdata"}
    found = _Tree(declared=declared, texts=texts)
    made = etree.Element(root)
    found.fill(made, read(path))
    found.check(str(path))
    return made


@attrs.define
class _Tree(ConfigFindings):
    """The elements made so far, and the problems of tables that make none."""

    declared: Mapping[str, set[str]] = attrs.field(kw_only=True)
    texts: Set[str] = attrs.field(kw_only=True)

    def fill(self, element: Element, table: Mapping[str, Any], depth: int = 1) -> None:
        attributes = self.declared.get(str(element.tag), set())
        for key, value in table.items():
            place = ConfigPlace(0, f"{place_of(element)}.{key}".lstrip("."))
            try:
                if key in attributes and not isinstance(value, dict | list):
                    element.set(key, plain(value))
                elif key in TEXTS and element.tag in self.texts:
                    element.text = plain(value)
                elif depth == MAX_DEPTH:
                    self.problem(place, f"no table lies more than {MAX_DEPTH} tables deep")
                else:
                    for one in value if isinstance(value, list) else [value]:
                        self._add(element, key, one, depth)
            except ValueError:
                self.problem(place, "neither a key nor a text may have such characters")

    def _add(self, element: Element, key: str, value: Any, depth: int) -> None:
        inside = etree.SubElement(element, key)
        if isinstance(value, dict):
            self.fill(inside, value, depth + 1)
        else:
            inside.text = plain(value)
