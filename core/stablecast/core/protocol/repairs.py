"""Switches for the rules that depart from documented ones, because those lose messages (formal design, section 7).

Profile `safe` has all repairs; profile `5.3` has none and follows the guide to the letter. Each repair has a paragraph
in `spec/decisions.md` and a counterexample that a test replays with and without it (`tests/core/*/test_repairs*.py`).
The consensus of a source (7.1) and the intragroup rule (7.8) are options with names of their own.
"""

from enum import IntFlag


class Repair(IntFlag):
    """A repaired rule. Without its switch the documented rule is in force."""

    NONE = 0
    EVERY_GROUP = 1
    """7.2 A quorum of every group answers before a source resumes, or before a receiver gives up a message."""
    ONE_LIFE = 2
    """7.3 A store acknowledges a message by life and number, and cuts back a dead tail.

    A source sends only when a quorum knows the term of its life, so that later lives find the newest history.
    """
    TELL_LIVES = 4
    """7.4 A receiver identifies messages by life and number, not by number alone."""
    HOLES = 8
    """7.5 Holes that no store can fill are announced and passed over; they do not hold back later messages."""
    LEASE = 16
    """7.6 A client stops using its RegID before the store may give it away."""
    MEMORY = 32
    """7.6 A store that may have lost its memory grants nothing for one activity timeout."""
    PREFIX = 64
    """7.7 A receiver acknowledges contiguous prefixes only, in whatever order it delivers and consumes."""
    PACED = 128
    """7.8 Rules for RPP that never lose a message.

    A registration needs a flight within capacity, and messages stored but unacknowledged at a restart count as in
    flight. Withheld acknowledgements are reviewed at each release. New receivers start above all released numbers.
    Messages released unwritten are acknowledged once their release is synced.
    """
    ELECTION = 256
    """7.9 Proxies: tokens carry the store's index, and no PREG of another life replaces an active source."""
    VOTE = 512
    """7.11 A store that lost its memory has no vote about older lives until the current life announced itself there."""
    ALL = 1023
