"""The configurations that the two documents print, as files; paths and names of hosts are those of an example site."""

from pathlib import Path

from tests.support.tree import ROOT

GUIDE = ROOT / "tests" / "fixtures" / "guide"


def printed(name: str) -> str:
    return (GUIDE / name).read_text(encoding="utf-8")


def placed(name: str, directory: Path, **changes: str) -> Path:
    """Write a printed configuration into a directory, with its absolute paths below it; return the file.

    `changes` replace words of the text.
    """
    text = printed(name)
    for root in ("/configs", "/stores"):
        text = text.replace(f">{root}", f">{directory}{root}").replace(f'"{root}', f'"{directory}{root}')
    for word, other in changes.items():
        text = text.replace(word, other)
    path = directory / name
    path.write_text(text, encoding="utf-8")
    stores = [f"stores/store{number}/{kind}" for number in range(2) for kind in ("cache", "state")]
    for part in ("cache", "state", "configs/stores/store0", "configs/stores/store1", *stores):
        (directory / part).mkdir(parents=True, exist_ok=True)
    return path
