"""The clocks of a host: they drift, and the clock on the wall may leap."""

from stablecast.core.machine.units import SECOND
from stablecast.lab.world.kernel import Kernel

EPOCH_NS = 1_767_225_600 * SECOND
"""Time of the wall clock when a world begins: 2026-01-01T00:00:00Z, in ns."""

MILLION = 1_000_000


class HostClock:
    def __init__(self, kernel: Kernel, drift_ppm: int = 0, ahead_ns: int = 0) -> None:
        """Make clocks that gain `drift_ppm` microseconds a second; the wall clock is `ahead_ns` ahead."""
        self._kernel = kernel
        self._since = kernel.now
        self._base = kernel.now
        self._drift = drift_ppm
        self._ahead = ahead_ns

    def monotonic_ns(self) -> int:
        passed = self._kernel.now - self._since
        if self._drift:  # The clock is read thousands of times, and few clocks drift.
            passed += passed * self._drift // MILLION
        return self._base + passed

    def wall_ns(self) -> int:
        """Return the time since the epoch in ns."""
        return EPOCH_NS + self.monotonic_ns() + self._ahead

    def leap(self, ns: int) -> None:
        """Move the wall clock forward, or back by a negative time."""
        self._ahead += ns

    def drift(self, ppm: int) -> None:
        """Gain this many microseconds a second from now on."""
        self._base, self._since = self.monotonic_ns(), self._kernel.now
        self._drift = ppm

    def true_wait(self, seconds: float) -> int:
        """Return the ns of the world in which seconds of this host pass, rounded up."""
        ns = int(seconds * 1e9)
        if self._drift:
            ns -= ns * self._drift // (MILLION + self._drift)
        return ns + 2
