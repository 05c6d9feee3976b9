"""Simulate a cluster from a seed: unmodified endpoints in virtual time, injected faults, and independent checkers.

`virtual_time` orders events. `network` simulates connections that delay, stall and break. `disk` simulates journals
that lose unsynced records. `process` is the base of all processes; `source`, `receiver` and `store` drive the three
endpoints as the client and the daemon do. `application` consumes the messages of a receiver, and `cluster` puts
everything together.

`schedule` and `setup` draw messages, faults and configuration from a seed. The `*_checkers` judge by `rules`. `runner`
runs one schedule and reduces a failing one, `coverage` counts visited states, and `command` runs many seeds.

In some worlds receivers find sources by topic resolution (`resolution`). In the others the simulator passes the
source's address to every receiver at regular intervals, and so do stores that have a name.
"""
