"""Search for the shortest run in which a source's configuration loses a stable message or stalls.

`instance` reads the configuration. `endpoints` caches what the core's endpoints do, which `stores`, `sources` and
`receivers` drive. `view` and `world` combine them, coarse or fine. `rules` judges states, `search` finds the shortest
run, `story` prints it, and `command` serves `stablecast prove`. `variants` are fine worlds with a receiver and all
faults at once, which `composed` explores, and `twins` checks that each state is kept with all that matters.
"""
