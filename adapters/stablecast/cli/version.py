"""What `stablecast --version` says: which release this is, and which form of it runs."""

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from types import ModuleType

from stablecast.core.machine import ranges


def form_of(module: ModuleType) -> str:
    """Whether a hot module was compiled or is read as it is written."""
    return "compiled" if str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES)) else "pure"


def text() -> str:
    """The release and the form of its hot modules: all are compiled, or none."""
    return f"stablecast {version('stablecast')} ({form_of(ranges)})"
