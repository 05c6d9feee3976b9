"""Building blocks of every machine: charts, timers, serial numbers, ranges, seeded randomness, units."""
