"""One target under Atheris, in a process of its own: `python -m tools.fuzz.worker NAME CORPUS [FLAGS of libFuzzer]`."""

import sys

import atheris

with atheris.instrument_imports(include=["stablecast"], enable_loader_override=False):
    from tools.fuzz.targets import TARGETS


def main() -> None:
    """Read mutated bytes until a limit of the flags is reached, or one raises what it must not."""
    target = TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target.accepts)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
