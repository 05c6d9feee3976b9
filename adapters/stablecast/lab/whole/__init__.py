"""Whole worlds: the shipped programs, unmodified, on the hosts of a simulated world, under faults that a seed draws.

`schedule` draws the programs and the faults. `conductor` starts the programs of `applications`, lets the faults happen,
and waits until everything has settled. `runner` runs one schedule and has it judged, by `history_checker` from what the
applications observed, and by `stablecast verify` from the traces.
"""
