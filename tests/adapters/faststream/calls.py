"""A list of the values that handlers noted, and a way to wait for them."""

import asyncio
from typing import Any


class Calls(list[Any]):
    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Condition()

    async def note(self, value: Any) -> None:
        async with self._changed:
            self.append(value)
            self._changed.notify_all()

    async def reach(self, count: int = 1) -> list[Any]:
        """Wait for this many values, and return all."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self) >= count)
        return list(self)
