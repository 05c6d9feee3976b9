"""The rules where this system departs from documented ones that lose messages (formal design, section 7).

Profile `safe` has all of them; profile `5.3` none, to the letter of the guide. Every repair has a counterexample that
a test replays under both (`tests/core/test_repairs_*.py`) and a paragraph in `spec/decisions.md`. The consensus of a
source (7.1) and the intragroup rule (7.8) are options with a name of their own.
"""

from enum import IntFlag


class Repair(IntFlag):
    """A repaired rule; without it the documented one is in force."""

    NONE = 0
    EVERY_GROUP = 1
    """7.2 A source that returns hears a quorum of every group before it resumes; a receiver before it gives up."""
    ONE_LIFE = 2
    """7.3 A store tells messages apart by life and number: it acks the same message only, and cuts back a dead tail.
    A source sends only when a quorum knows the term of its life, so that the newest history can be told."""
    TELL_LIVES = 4
    """7.4 A receiver tells messages apart by life and number, not by number alone."""
    HOLES = 8
    """7.5 Holes that no store can fill are announced and passed over; they do not hold back what lies behind them."""
    LEASE = 16
    """7.6 A client stops using its RegID before the store may give it away."""
    MEMORY = 32
    """7.6 A store that may have lost its memory grants nothing for one activity timeout."""
    PREFIX = 64
    """7.7 A receiver acknowledges contiguous prefixes only, in whatever order it delivers and consumes."""
    PACED = 128
    """7.8 RPP: flight within capacity at registration, withheld acks looked at again whenever something goes, stored
    and unacknowledged messages count as in flight after a restart, new receivers start behind all that was freed, what
    goes unwritten is acknowledged once that is synced."""
    ELECTION = 256
    """7.9 Proxies: tokens with the store's index, and no PREG of another life moves a source that is active."""
    ALL = 511
