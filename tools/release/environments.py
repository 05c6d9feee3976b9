"""New environments for the distributions of a release, apart from the one of the checkout."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

SECONDS: Final = 900
"""Time limit of one command."""

CLEAN: Final = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
"""Variables that an environment gets from this one. PYTHONPATH is none of them."""


class ReleaseError(Exception):
    """A command failed in a new environment."""


@attrs.frozen
class Environment:
    folder: Path

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in CLEAN or name.startswith("PIP_")}
        return {**kept, "PATH": f"{self.programs}:{kept.get('PATH', '')}", "VIRTUAL_ENV": str(self.folder)}

    def install(self, *requirements: str) -> None:
        """Install with pip. Raises ReleaseError."""
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)

    def run(self, program: str, *arguments: str, cwd: Path | None = None, more: Mapping[str, str] | None = None) -> str:
        """Run a program of the environment; return its standard output. Raises ReleaseError."""
        command = [str(self.programs / program), *arguments]
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env={**self.variables, **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        if done.returncode:
            raise ReleaseError(f"{program} {' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def interpreter(version: str) -> str | None:
    """Return the program of a series of Python that can make an environment, or None."""
    program = shutil.which(f"python{version}")
    probe = f"import ensurepip, sys, venv; sys.exit('{version}' != '%d.%d' % sys.version_info[:2])"
    if program is None or subprocess.run([program, "-c", probe], check=False, capture_output=True).returncode:
        return None
    return program


def fresh(folder: Path, python: str) -> Environment:
    """Make an empty environment. Raises CalledProcessError."""
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    return Environment(folder)
