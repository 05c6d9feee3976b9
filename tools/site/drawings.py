"""Drawings of the handbook as SVG, made by code. Lines have the colour of the text, so they suit dark and light."""

import itertools
import math
import re
from collections.abc import Callable
from typing import Final

MARK: Final = re.compile(r"^!\[[^\]]*\]\([\w./]*static/(\w+?)(?:-(\d+))?\.svg\)$", re.MULTILINE)
LEFT: Final = "#2a7fb8"
RIGHT: Final = "#d9822b"
SPACE: Final = 90
"""Distance of two stores in pixels."""

RADIUS: Final = 22

CAPTION: Final = 400
"""Width that the text below a drawing needs, in pixels."""


def drawn(text: str) -> str:
    """Return the text of a page with its drawings in place of their files: they take the colours of the page."""
    return MARK.sub(lambda found: f"```{{raw}} html\n{drawing(found[1], int(found[2] or 0))}\n```", text)


def drawing(name: str, number: int = 0) -> str:
    """Return a drawing by its name. Raises KeyError."""
    return f'<div class="drawing">{DRAWINGS[name](number)}</div>'


def pictures() -> dict[str, str]:
    """Return the files of all drawings by name: their lines are light on dark screens, because they know no page."""
    screens = "<style>svg{color:#222}@media (prefers-color-scheme:dark){svg{color:#ddd}}"
    named = [("broker", 0), ("beside", 0), ("groups", 0), ("quorum", 2), ("quorum", 3), ("quorum", 5)]
    return {
        f"{name}-{number}.svg"
        if number
        else f"{name}.svg": f"{DRAWINGS[name](number).replace('<style>', screens, 1)}\n"
        for name, number in named
    }


def quorums(stores: int) -> str:
    """Draw two quorums of some stores that share as few stores as possible."""
    need = stores // 2 + 1
    first, second = set(range(need)), set(range(stores - need, stores))
    width = max(SPACE * stores + 20, CAPTION)
    parts = [_set(first, 52, 34, LEFT), _set(second, 52, 42, RIGHT)]
    parts += [_store(index, 52, both=index in first & second) for index in range(stores)]
    shared = ", ".join(f"store {index + 1}" for index in sorted(first & second))
    parts.append(_text(width / 2, 122, f"any two quorums of {need} share a store: here {shared}"))
    return _svg(width, 136, f"Two quorums of {stores} stores share {shared}", parts)


def fewest_shared(stores: int) -> int:
    """Return the smallest number of stores that two quorums share."""
    sets = [set(one) for one in itertools.combinations(range(stores), stores // 2 + 1)]
    return min(len(one & other) for one in sets for other in sets)


def groups() -> str:
    """Draw two groups of three stores with a quorum in each."""
    parts = []
    for place, begin in (("place 1", 0), ("place 2", 3)):
        shift = 40 * (begin // 3)
        x = begin * SPACE + shift
        parts.append(f'<rect x="{x + 6}" y="10" width="{3 * SPACE - 4}" height="88" rx="10" class="line"/>')
        parts.append(_set({begin, begin + 1}, 52, 34, LEFT, shift))
        parts += [_store(index, 52, shift=shift) for index in range(begin, begin + 3)]
        parts.append(_text(x + 1.5 * SPACE, 118, place))
    return _svg(6 * SPACE + 60, 130, "Two groups of three stores, with a quorum of two in each", parts)


def broker() -> str:
    """Draw the way of a message through a server."""
    boxes = [_box(10, "source"), _box(210, "server and disk"), _box(410, "receiver")]
    arrows = [_arrow(130, 35, 210, 35, "1"), _arrow(330, 35, 410, 35, "2")]
    return _svg(540, 80, "A message goes from the source to a server, and then to the receiver", boxes + arrows)


def beside() -> str:
    """Draw the way of a message past the stores."""
    boxes = [_box(10, "source"), _box(410, "receiver"), _box(150, "store", 100), _box(280, "store", 100)]
    arrows = [_arrow(130, 30, 410, 30, "1"), _arrow(110, 60, 170, 100, "1"), _arrow(125, 50, 300, 100, "1")]
    later = [_arrow(400, 115, 440, 60, "only after an absence", dashed=True)]
    return _svg(620, 170, "A message goes to receiver and stores at the same time", boxes + arrows + later)


DRAWINGS: Final[dict[str, Callable[[int], str]]] = {
    "quorum": quorums,
    "groups": lambda _: groups(),
    "broker": lambda _: broker(),
    "beside": lambda _: beside(),
}


def _svg(width: float, height: float, title: str, parts: list[str]) -> str:
    style = (
        ".line{fill:none;stroke:currentColor;stroke-width:1.5}.text{fill:currentColor;font:14px sans-serif}"
        ".dash{stroke-dasharray:5 4}"
    )
    head = f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" xmlns="http://www.w3.org/2000/svg">'
    return f"{head}<title>{title}</title><style>{style}</style>{''.join(parts)}</svg>"


def _centre(index: int) -> float:
    return 10 + SPACE * (index + 0.5)


def _store(index: int, y: float, *, both: bool = False, shift: float = 0) -> str:
    x = _centre(index) + shift
    filled = ' style="fill:currentColor;fill-opacity:0.18"' if both else ""
    return f'<circle cx="{x:g}" cy="{y}" r="{RADIUS}" class="line"{filled}/>' + _text(x, y + 5, str(index + 1))


def _set(stores: set[int], y: float, reach: float, colour: str, shift: float = 0) -> str:
    low, high = _centre(min(stores)) + shift, _centre(max(stores)) + shift
    return (
        f'<rect x="{low - reach:g}" y="{y - reach:g}" width="{high - low + 2 * reach:g}" height="{2 * reach:g}" '
        f'rx="{reach:g}" style="fill:{colour};fill-opacity:0.15;stroke:{colour};stroke-width:2"/>'
    )


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="text" text-anchor="middle">{text}</text>'


def _box(x: float, text: str, y: float = 10) -> str:
    return f'<rect x="{x}" y="{y}" width="120" height="50" rx="6" class="line"/>' + _text(x + 60, y + 30, text)


def _arrow(x1: float, y1: float, x2: float, y2: float, text: str, *, dashed: bool = False) -> str:
    turn = math.atan2(y2 - y1, x2 - x1)
    head = " ".join(
        f"{x2 - 9 * math.cos(turn + side):.1f},{y2 - 9 * math.sin(turn + side):.1f}" for side in (0.4, -0.4)
    )
    line = f'<path d="M{x1} {y1}L{x2} {y2}" class="line{" dash" if dashed else ""}"/>'
    anchor = _text((x1 + x2) / 2 + (90 if dashed else 0), (y1 + y2) / 2 - 6 + (14 if dashed else 0), text)
    return f'{line}<polygon points="{x2},{y2} {head}" style="fill:currentColor"/>{anchor}'


# ------------------------------------------------------------------------------------------------ sequences

LANE: Final = 190
STEP: Final = 34
HEAD: Final = 50
PERSON = re.compile(r"^ +participant (\w+)$", re.MULTILINE)
ROW = re.compile(r"^ +(?:(\w+)->>(\w+)|Note over (\w+)): (.*)$", re.MULTILINE)


def sequence(text: str) -> str:
    """Draw a sequence diagram of participants, arrows and notes, as `tools.site.sequences` writes it."""
    people = {name: 10 + LANE * (place + 0.5) for place, name in enumerate(PERSON.findall(text))}
    rows = ROW.findall(text)
    bottom = HEAD + STEP * len(rows) + 20
    parts = [f'<path d="M{x:g} {HEAD - 8}V{bottom}" class="line dash" opacity="0.5"/>' for x in people.values()]
    parts += [_box(x - 60, name, 2).replace('height="50"', 'height="36"') for name, x in people.items()]
    for row, (sender, receiver, here, words) in enumerate(rows, 1):
        y = HEAD + STEP * row
        parts.append(_text(people[here], y, words) if here else _arrow(people[sender], y, people[receiver], y, words))
    return f'<div class="drawing">{_svg(20 + LANE * len(people), bottom + 6, "the messages of this run", parts)}</div>'
