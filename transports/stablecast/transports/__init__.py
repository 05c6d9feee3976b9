"""Pure protocols of stablecast: they convert bytes to messages of the core and back, without clock, I/O or entropy."""
