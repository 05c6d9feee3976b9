"""Explore one whole system of the core: two processes of a source, three stores, a receiver, and all faults at once.

`world` extends the world of `stablecast prove` by a receiver, losses of single messages, partial syncs and late
acknowledgements. `receivers` caches what the receiver's endpoint does, `guarantees` judges each state, `twins` checks
that each state is kept with all that matters, and `command` serves the command line.
"""
