"""Counts as they stand in a sentence."""


def plural(number: int, name: str, of_one: str = "", of_many: str = "") -> str:
    """So many of them, and what they do where a verb follows.

    >>> plural(0, "file"), plural(1, "source"), plural(1000, "source"), plural(1, "message", "was", "were")
    ('0 files', '1 source', '1,000 sources', '1 message was')
    """
    verb = of_one if number == 1 else of_many
    return f"{number:,} {name}{'' if number == 1 else 's'}{verb and ' '}{verb}"
