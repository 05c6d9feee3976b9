"""Configuration files of clients, for tests."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

XML = """<?xml version="1.0" encoding="UTF-8"?>
<um-configuration version="1.0">
  <templates>{templates}</templates>
  <applications>{applications}</applications>
</um-configuration>
"""


@contextmanager
def option_file(text: str, name: str = "um.cfg") -> Iterator[Path]:
    """Write a file for the time of the context."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, name)
        path.write_text(text, encoding="utf-8")
        yield path


def options(scope: str, **values: object) -> str:
    return f'<options type="{scope}">{"".join(_option(name, value) for name, value in values.items())}</options>'


def template(name: str, *parts: str) -> str:
    return f'<template name="{name}">{"".join(parts)}</template>'


def application(*parts: str, name: str = "", using: str = "", context: str = "") -> str:
    of_context = f' template="{context}"' if context else ""
    named = f' name="{name}"' if name else ""
    templates = f' template="{using}"' if using else ""
    inside = f"<contexts><context{of_context}>{''.join(parts)}</context></contexts>"
    return f"<application{named}{templates}>{inside}</application>"


def document(templates: str = "", applications: str = "") -> str:
    """Return a whole XML file."""
    return XML.format(templates=templates, applications=applications)


def _option(name: str, value: object) -> str:
    return f'<option name="{name}" default-value="{value}"/>'
