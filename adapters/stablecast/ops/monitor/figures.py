"""Format figures for people."""

import time

from stablecast.core.machine.units import SECOND

_THOUSANDS = "kMGT"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def wire(number: int) -> str:
    """Return a sequence number as the wire shows it: 32 bits in hexadecimal (P-911), or -1 before the first.

    >>> wire(0xC2F), wire(-1), wire((1 << 32) + 5)
    ('c2f', '-1', '5')
    """
    return f"{number & 0xFFFF_FFFF:x}" if number >= 0 else str(number)


def count(number: float) -> str:
    """Return a whole number with thousands separators.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{round(number):,}"


def short(number: float) -> str:
    """Return a number in at most five characters.

    >>> [short(number) for number in (0, 7.25, 950, 1234, 45_600, 1_200_000, 3.4e9, 9e15)]
    ['0', '7.2', '950', '1.2k', '46k', '1.2M', '3.4G', '9000T']
    """
    if number < 1000:
        return f"{number:.1f}" if number % 1 and number < 100 else f"{number:.0f}"
    power = 0
    while number >= 1000 and power < len(_THOUSANDS):
        number, power = number / 1000, power + 1
    unit = _THOUSANDS[power - 1]
    return f"{number:.1f}{unit}" if number < 10 else f"{number:.0f}{unit}"


def size(octets: float) -> str:
    """Return bytes in binary units.

    >>> [size(octets) for octets in (0, 999, 65_536, 50_331_648, 1 << 50, 1 << 64)]
    ['0 B', '999 B', '64.0 KiB', '48.0 MiB', '1.0 PiB', '16384.0 PiB']
    """
    if octets < 1024:
        return f"{octets:.0f} B"
    unit = 0
    while octets >= 1024 and unit < len(_UNITS) - 1:
        octets, unit = octets / 1024, unit + 1
    return f"{octets:.1f} {_UNITS[unit]}"


def among(first: str, number: int) -> str:
    """Return the first name and the number of further ones.

    >>> among("orders", 1), among("orders", 1000)
    ('orders', 'orders and 999 more')
    """
    return first if number == 1 else f"{first} and {number - 1:,} more"


def span(ns: float) -> str:
    """Return a duration in its two largest units.

    >>> [span(ns) for ns in (-5, 1500, 250_000_000, 12 * SECOND, 90 * SECOND, 7260 * SECOND, 200_000 * SECOND)]
    ['0 ms', '0 ms', '250 ms', '12 s', '1 min 30 s', '2 h 1 min', '2 d 7 h']
    """
    milliseconds = max(0, int(ns)) // 1_000_000
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds // 1000
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    if seconds < 86_400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3600} h"


def moment(ns: int) -> str:
    """Return an instant as local time with microseconds, as in the documented pages."""
    return f"{time.strftime('%H:%M:%S', time.localtime(ns // SECOND))}.{ns % SECOND // 1000:06}"


def date(ns: int) -> str:
    """Return an instant as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(ns // SECOND))


FILTERS = {filter_.__name__: filter_ for filter_ in (wire, count, short, size, span, moment, date)}
"""The functions that templates use, by name."""
