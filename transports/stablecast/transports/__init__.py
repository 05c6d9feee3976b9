"""Pure protocols of stablecast: bytes from and to the messages of the core; no clock, no I/O, no entropy."""
