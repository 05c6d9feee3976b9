"""Whole worlds in two domains: which they are, and who is where."""

from random import Random
from typing import Final

import attrs

from stablecast.lab.whole.schedule import RECEIVERS, SECOND_SOURCE, SOURCE, STORES, TURNS, WHOLE_BYTES, Setup

PARTED_SHARE: Final = 0.04
"""Share of the seeds whose worlds have two domains."""

LINKED_SHARE: Final = 0.4
"""Share of these in which each domain has a router, and the two are linked."""

PARTED_SEEDS: Final = 10_000_000
"""The seed from which on all worlds have two domains."""


def parted(rng: Random, seed: int, setup: Setup) -> Setup:
    """Return the setup in two domains with a router between them, in few seeds, and in all from `PARTED_SEEDS` on.

    Stores take part in resolution there, which a store from a directory does through relays and services only, and
    none of the daemon's file does. A store that is used in turn, or has room for one flight only, would lose what is
    promised behind a router that fails.
    """
    if rng.random() >= PARTED_SHARE and seed < PARTED_SEEDS:
        return setup
    if setup.storage == TURNS:
        options = tuple(option for option in setup.options if option[0] != "ume_store_behavior")
        setup = attrs.evolve(setup, storage="", options=options)
    if setup.tight:
        kept = tuple(option for option in setup.store_options if not option.startswith("repository-size-limit="))
        setup = attrs.evolve(setup, store_options=kept)
    finder = {"both": "both", "service": "services", "services": "services"}.get(setup.finder, "relays")
    hosts = (SOURCE, SECOND_SOURCE, *RECEIVERS, *STORES)
    far = tuple(name for name in hosts if rng.random() < 0.5) or RECEIVERS[:1]
    leaving = rng.choice(("", "", "lbtrm", "lbtru"))
    if setup.size > WHOLE_BYTES and "transport" not in dict(setup.options):
        leaving = ""  # Messages of a TCP stream do not fit the datagrams of an exit, and are dropped as documented.
    linked = rng.random() < LINKED_SHARE
    return attrs.evolve(setup, finder=finder, daemon=False, far=far, leaving=leaving, linked=linked)
