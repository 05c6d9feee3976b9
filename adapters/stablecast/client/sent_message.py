"""What `Source.send` returns."""

from typing import TYPE_CHECKING

import attrs

from stablecast.core.machine import serial

if TYPE_CHECKING:
    from stablecast.client.sender import Sender


@attrs.frozen
class Sent:
    """A message on its way; `number`, that of its last piece, is extended, `sequence_number` as on the wire."""

    number: int
    source: "Sender"

    @property
    def sequence_number(self) -> int:
        """The 32-bit number."""
        return serial.wire(self.number)

    async def stable(self) -> None:
        """Wait until it is synced at the stores the group rule asks for. Raises NotStable or Closed."""
        await self.source.wait_stable(self.number)
