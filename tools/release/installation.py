"""Install the distributions of a release where nothing else is, and use them as a newcomer does."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.release.distributions import PROJECT, Distributions, series
from tools.release.environments import Environment, ReleaseError, fresh, interpreter

PURE: Final = """\
import importlib, pkgutil, stablecast.core, stablecast.transports
for package in (stablecast.core, stablecast.transports):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
print("the core and the transports are complete")
"""

TYPED: Final = """\
from stablecast.client import Context, Message


async def first(context: Context) -> str:
    receiver = context.receiver("orders")
    async for message in receiver:
        reveal_type(message)
        return message.payload.decode()
    return ""


def wrong(message: Message) -> int:
    return message.topic
"""
"""A program of a user with one mistake, for a type checker that sees only the installed wheel."""

WORLD: Final = ("sim", "--first", "7", "--seeds", "1", "--jobs", "1", "--digests")


def check(made: Distributions) -> Iterator[str]:
    """Yield a line for each distribution and Python that works. Raises ReleaseError."""
    versions = series()
    for version in (versions[0], versions[-1]):
        python = interpreter(version)
        if python is None:
            yield f"Python {version} is not installed here: nothing was shown for it"
            continue
        with tempfile.TemporaryDirectory(prefix="stablecast-release-") as folder:
            for path in made.files:
                environment = fresh(Path(folder, path.suffix[1:]), python)
                environment.install(str(path))
                yield f"Python {version}, {path.suffix}: {environment.run('python', '-c', PURE).strip()}"
                yield f"Python {version}, {path.suffix}: {_commands(environment)}"
            if version == versions[0]:
                environment = fresh(Path(folder, "types"), python)
                environment.install(str(made.wheel))
                yield f"Python {version}, .whl, mypy: {_types(environment)}"


def _commands(environment: Environment) -> str:
    told = environment.run("stablecast", "--version").strip()
    if PROJECT["version"] not in told:
        raise ReleaseError(f"stablecast --version prints {told!r}")
    digest = re.search(r"digest (\w+)", environment.run("stablecast", *WORLD))
    assert digest is not None
    return f"{told}, seed 7 has the digest {digest[1][:16]}"


def _types(environment: Environment) -> str:
    environment.install("mypy")
    program = environment.folder / "program.py"
    program.write_text(TYPED, encoding="utf-8")
    try:
        told = environment.run("mypy", "--strict", str(program))
    except ReleaseError as error:
        told = str(error)
    wrong = re.findall(r"error: .*", told)
    if 'Revealed type is "stablecast.client.message.Message"' not in told or len(wrong) != 1:
        raise ReleaseError(f"a type checker does not see the types of the wheel:\n{told}")
    return "the types of the client are seen, and a wrong use is found"
