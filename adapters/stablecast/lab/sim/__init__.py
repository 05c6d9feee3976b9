"""A seeded world: the unmodified endpoints, byte for byte, in virtual time, among faults, watched from outside.

`world` has the clock and the order of things, `network` connections that are slow, stall and break, `disk` journals
that lose what was not synced, `process` what all processes do; `source`, `receiver` and `store` drive the three
endpoints as the client and the daemon do; `session` is the client's own, `application` reads what it delivers;
`cluster` puts them together. `schedule` draws what is sent and what goes wrong from a seed, `checkers` watches by the
`rules`, `runner` runs a schedule, `shrink` makes a failing one small, `coverage` says what was visited, and `command`
does it for many seeds.

In part of the worlds receivers find sources by topic resolution (`resolving`); in the others sources tell receivers
where they listen as often as they would advertise it, as stores do that have a name.
"""
