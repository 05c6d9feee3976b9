"""The entropy of the real machine."""

import os


class SystemEntropy:
    """The entropy of the kernel."""

    __slots__ = ()
    octets = staticmethod(os.urandom)

    def bits(self, count: int) -> int:
        """Return a random number of at most `count` bits, without the imports of `secrets`."""
        return int.from_bytes(os.urandom(-(-count // 8)), "big") >> (-count % 8)

    def below(self, limit: int) -> int:
        """Return a random number from 0 to below `limit`."""
        width = (limit - 1).bit_length()
        # A remainder would prefer small numbers, so numbers that are too large are drawn again.
        while (drawn := self.bits(width)) >= limit:
            pass
        return drawn
