"""Tools of every state machine: charts, timers, serial numbers, ranges, seeded randomness and units."""
