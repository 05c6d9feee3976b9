"""Links of the built site: each leads to a file of the site, and to a place in it."""

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

TARGET: Final = re.compile(r"\b(?:href|src)=\"([^\"]+)\"")
PLACE: Final = re.compile(r"\b(?:id|name)=\"([^\"]+)\"")
SCRIPT: Final = re.compile(r"<script\b[^>]*>.*?</script>", re.DOTALL)


@cache
def _places(page: Path) -> frozenset[str]:
    return frozenset(unescape(found) for found in PLACE.findall(page.read_text(encoding="utf-8")))


def broken(site: Path) -> Iterator[str]:
    """Yield each link of a built site that leads nowhere, and each file that another host would serve."""
    _places.cache_clear()
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        for found in dict.fromkeys(TARGET.findall(SCRIPT.sub(lambda one: one[0].partition(">")[0] + ">", text))):
            link = urlsplit(unescape(found))
            if link.scheme or link.netloc:
                if f'src="{found}"' in text and link.scheme != "data":
                    yield f"{page.relative_to(site)}: {found} comes from another host"
                continue
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            if not target.exists():
                yield f"{page.relative_to(site)}: {found} does not exist"
            elif link.fragment and target.suffix == ".html" and unquote(link.fragment) not in _places(target):
                yield f"{page.relative_to(site)}: {found} has no such place"
