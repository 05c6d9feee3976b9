"""Which traces are not there, and which are there twice: what a verdict without violations may rest on.

Sources name their stores, stores the lives whose messages they hold, and the receivers that acknowledged. Of whoever is
named and has no trace, nothing was judged.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.cross_ground import Told, Witness
from stablecast.evidence.trace.frame_link import FrameLink
from stablecast.text import plural

MAX_NAMED: Final = 20
"""Names in a sentence, and sentences of one kind, at most."""


def absent(facts: Mapping[str, list[Told]], witnesses: Collection[Witness]) -> list[str]:
    """Return a sentence for each store that sources name, and one each for sources and receivers, without a trace."""
    there = {one.address for one in witnesses if one.role is Role.STORE}
    # A store may have several addresses in the traces of one source: a name, and what it answered from.
    members: dict[tuple[int, int, int], set[str]] = defaultdict(set)
    for told in facts["member"]:
        members[told.fact.life, told.fact.first, told.fact.last].add(told.fact.peer)
    naming: dict[str, set[int]] = defaultdict(set)
    for (life, _, _), addresses in members.items():
        if not addresses & there:
            naming[min(addresses)].add(life)
    found = [
        f"no trace of store {address}, which {plural(len(lives), 'source')} of these traces {_verb(lives)}: add the "
        "traces of its host"
        for address, lives in sorted(naming.items())
    ]
    if len(found) > MAX_NAMED:
        found[MAX_NAMED:] = [f"and no trace of {len(found) - MAX_NAMED} more stores"]
    sources = {one.life for one in witnesses if one.role is Role.SOURCE}
    lives = {told.fact.life for kind in ("held", "wrote", "delivered") for told in facts[kind]} - sources - {0}
    readers = {f"{told.fact.peer}/{told.fact.first}" for told in facts["holds"]}
    heard = {told.fact.peer for told in facts["heard"]} - readers
    if lives:
        names = _names(f"{life:#x}" for life in lives)
        found.append(f"no trace of {plural(len(lives), 'source')} whose messages are there, by life: {names}")
    if heard:
        found.append(f"no trace of {plural(len(heard), 'receiver')} that acknowledged (store/RegID): {_names(heard)}")
    return found


def doubled(begins: Iterable[tuple[Path, FrameLink]]) -> list[str]:
    """Return a sentence for each trace that is there more than once: the same endpoint in the same state and moment."""
    paths: dict[FrameLink, list[Path]] = defaultdict(list)
    for path, begin in begins:
        paths[begin].append(path)
    found = [
        f"{_names(map(str, some))} are the same trace of {begin.role} {begin.endpoint}: keep one of them"
        for begin, some in paths.items()
        if len(some) > 1
    ]
    if len(found) > MAX_NAMED:
        found[MAX_NAMED:] = [f"and {len(found) - MAX_NAMED} more traces are there more than once"]
    return found


def _verb(lives: Collection[int]) -> str:
    return "names" if len(lives) == 1 else "name"


def _names(found: Iterable[str]) -> str:
    names = sorted(found)
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
