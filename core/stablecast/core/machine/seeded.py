"""Randomness of the machines: a generator whose whole state is one int.

The seed is given at construction, so the same inputs give the same effects. The state is part of the machine's
snapshot, so a replay may start in the middle. The generator is splitmix64: fast, well distributed, not for secrets.
"""

import attrs

U64 = 1 << 64
"""Count of distinct values of `Seeded.next_u64`."""

_MASK = U64 - 1
_GAMMA = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB


@attrs.define
class Seeded:
    """A splitmix64 generator.

    Attributes:
        state: The seed, and after each draw the state to continue from; 64 bits count.

    >>> Seeded(0).next_u64() == 0xE220A8397B1DCDAF
    True
    """

    state: int

    def next_u64(self) -> int:
        """Return the next value, 0 <= value < 2**64."""
        self.state = z = (self.state + _GAMMA) & _MASK
        z = ((z ^ (z >> 30)) * _MIX_1) & _MASK
        z = ((z ^ (z >> 27)) * _MIX_2) & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """Return a value 0 <= value < `n`, each equally likely. Raises ValueError if `n` is not in 1..2**64."""
        if not 1 <= n <= U64:
            raise ValueError(f"cannot draw below {n}; the bound must be between 1 and 2**64")
        fair = U64 - U64 % n  # Values from here on would favour the low results; more than half of all are fair.
        # Drawing again keeps the distribution even; a plain modulo would not.
        while (value := self.next_u64()) >= fair:
            pass
        return value % n

    def between(self, low: int, high: int) -> int:
        """Return a value low <= value <= high, each equally likely. Raises ValueError if low > high."""
        if low > high:
            raise ValueError(f"cannot draw between {low} and {high}; the low end must not exceed the high end")
        return low + self.below(high - low + 1)
