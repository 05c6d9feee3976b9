"""The release and the build of the running program, for the first lines of a log."""

import sys
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = ("uvloop", "attrs", "lxml")
"""Installed libraries whose release an operator needs to know when a daemon misbehaves."""


def release() -> str:
    return f"stablecast {version('stablecast')}"


def build() -> str:
    """Return the interpreter, the platform and the libraries that the program runs on."""
    python = f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))} on {sys.platform}"
    return ", ".join([python, *(f"{name} {_installed(name)}" for name in LIBRARIES)])


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
