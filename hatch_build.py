"""The optional compiled build: hot modules become extension modules, made by Cython of the very files that run without.

    STABLECAST_COMPILED=1 pip install .    a wheel for this interpreter and machine; without the variable it is pure
    make compiled                          the same in build/compiled, beside the pure form, and tests of it

pyproject.toml lists the modules. They are compiled as Python, not as a dialect of it: annotations decide nothing,
numbers have no bounds, indices are checked. What they must not have, because it would behave differently, is found by
tests/test_compiled.py.
"""

import os
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WANTED = "STABLECAST_COMPILED"
NEEDED = ["cython>=3.3,<3.4", "setuptools>=75"]
DIRECTIVES = {"annotation_typing": False, "infer_types": False, "language_level": 3}
"""Types by annotation refuse subclasses (an IntEnum is no int), inferred ones took bytes for a bytearray; both gain
nothing."""

FLAGS = ["-O1", "-g0", "-w"]
"""Most of the time is the interpreter's library; more optimizing takes twice as long to build."""


def compiled(root: Path, modules: Sequence[str], into: Path) -> dict[str, str]:
    """Compiles modules of the root; what was made, and where it belongs in a wheel.

    Raises:
        Cython.Compiler.Errors.CompileError, setuptools.errors.CompileError: If they cannot be.
    """
    from Cython.Build import cythonize  # noqa: PLC0415 - not there where a wheel is pure
    from setuptools import Distribution, Extension  # type: ignore[import-untyped]  # noqa: PLC0415
    from setuptools.command.build_ext import build_ext  # type: ignore[import-untyped]  # noqa: PLC0415

    cores = os.cpu_count() or 1
    with chdir(root):
        extensions = [Extension(_name(module), [module], extra_compile_args=FLAGS) for module in modules]
        translated = cythonize(  # type: ignore[no-untyped-call]
            extensions, build_dir=str(into / "c"), nthreads=cores, compiler_directives=DIRECTIVES, quiet=True
        )
        command = build_ext(Distribution({"name": "stablecast", "ext_modules": translated}))
        command.build_lib, command.build_temp, command.parallel = str(into / "lib"), str(into / "o"), cores
        command.ensure_finalized()
        command.run()
    return {made: Path(made).relative_to(into / "lib").as_posix() for made in command.get_outputs()}


def _name(module: str) -> str:
    """The full name of a module; its file stands in a layer's folder."""
    return ".".join(Path(module).with_suffix("").parts[1:])


class CompiledBuildHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel, if they are wanted."""

    def dependencies(self) -> list[str]:
        """What a build needs beyond hatchling."""
        return NEEDED if self._wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install stays pure: its modules change."""
        if not self._wanted or version != "standard":
            return
        root = Path(self.root)
        made = compiled(root, self.config["modules"], root / "build" / "cython")
        build_data.update(pure_python=False, infer_tag=True)
        build_data["force_include"].update(made)

    @property
    def _wanted(self) -> bool:
        return os.environ.get(WANTED, "") not in {"", "0"}
