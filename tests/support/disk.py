"""A store's disk in the endpoint world: the effect of each written record on the readable contents."""

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import Role, StoreMemory

SIZE = 100
"""Payload bytes of a message in the endpoint world."""


def change(contents: dict[tuple[int, int], int], effect: fx.Effect) -> None:
    """Apply a write to the readable contents: incarnations by (RegID, number)."""
    match effect:
        case fx.PersistMessages():
            for number in range(effect.first, effect.first + effect.count):
                contents[effect.source_reg_id, number] = effect.incarnation
        case fx.Cut():
            for key in [key for key in contents if key[0] == effect.source_reg_id and key[1] >= effect.number]:
                del contents[key]
        case fx.Reclaim():
            for key in [key for key in contents if key[0] == effect.source_reg_id and key[1] < effect.number]:
                del contents[key]
        case fx.Forget(role=Role.SOURCE):
            for key in [key for key in contents if key[0] == effect.reg_id]:
                del contents[key]


def standing(disk: list[fx.Effect]) -> StoreMemory:
    """Return what a store with this disk knows of the time before."""
    written = [effect.memory for effect in disk if isinstance(effect, fx.PersistMemory)]
    return written[-1] if written else StoreMemory.KEPT


def replay(disk: list[fx.Effect]) -> tuple[list[fx.Client], list[tuple[int, int, int, int]], dict[int, int]]:
    """Return the clients, the extents (RegID, first, count, bytes) and the trails that these records leave."""
    clients: dict[int, fx.Client] = {}
    extents: list[tuple[int, int, int]] = []
    trails: dict[int, int] = {}
    for effect in disk:
        match effect:
            case fx.PersistClient():
                clients[effect.client.reg_id] = effect.client
            case fx.PersistMessages():
                extents.append((effect.source_reg_id, effect.first, effect.count))
            case fx.Cut():
                kept = []
                for reg_id, first, count in extents:
                    left = min(count, effect.number - first) if reg_id == effect.source_reg_id else count
                    if left > 0:
                        kept.append((reg_id, first, left))
                extents = kept
                if effect.source_reg_id in trails:
                    trails[effect.source_reg_id] = min(trails[effect.source_reg_id], effect.number)
            case fx.Reclaim():
                trails[effect.source_reg_id] = effect.number
                extents = [
                    (reg_id, max(first, effect.number) if reg_id == effect.source_reg_id else first, first + count)
                    for reg_id, first, count in extents
                ]
                extents = [(reg_id, first, stop - first) for reg_id, first, stop in extents if stop > first]
            case fx.Forget():
                clients.pop(effect.reg_id, None)
                trails.pop(effect.reg_id, None)
                if effect.role is Role.SOURCE:
                    extents = [extent for extent in extents if extent[0] != effect.reg_id]
            case fx.PersistMemory():
                pass  # `standing` reads it.
            case _:
                raise AssertionError(effect)
    return list(clients.values()), [(*extent, SIZE * extent[2]) for extent in extents], trails
