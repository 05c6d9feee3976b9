"""Deadlines in nanoseconds, where None is no deadline."""


def soonest(*deadlines: int | None) -> int | None:
    """The first to come; None if there is none.

    >>> soonest(None, 7, 5)
    5
    """
    found = [at for at in deadlines if at is not None]
    return min(found) if found else None
