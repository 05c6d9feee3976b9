# ruff: noqa: S608 - the queries are put together from constants of this package
"""The rules across endpoints in SQL, independent of `evidence.trace.cross_rules`.

`told` (trace, path, offset, kind, record, time, life, peer, first, last) has a row for each fact. The other views are
small: `known` (rule, whose) has the complete witnesses, `part` (life, grp, idx, address) the places of a group's
stores, `need` (life, grp, needed) and `enough` (life, needed) the demands of S1. `kin` (life, other) has pairs of lives
of one source, `lost` (life, number) the first number that a store lost. The result is a table of suspects.

Ranges that touch are joined to *islands* first. So a join meets a handful of rows for each key, however long the trace,
and a covered range lies in one island. The holders of a number are counted by a sweep over the ends of islands.
"""

from typing import Final

from stablecast.evidence.trace.cross_rules import LOSSES

SMALL: Final = {
    "known": "rule string, whose string",
    "part": "life string, grp bigint, idx bigint, address string",
    "need": "life string, grp bigint, needed bigint",
    "enough": "life string, needed bigint",
    "kin": "life string, other string",
    "lost": "life string, number bigint",
}
"""The columns of the small views."""

_COLUMNS: Final = "path, record, rule, number, kind, life, peer, offset"


def _islands(source: str, keys: str) -> str:
    """Return the ranges of a query (columns `keys`, first, last), joined if they overlap or touch."""
    return f"""
    SELECT {keys}, min(first) AS first, max(last) AS last FROM (
        SELECT *, sum(CASE WHEN reach IS NULL OR first > reach + 1 THEN 1 ELSE 0 END)
                      OVER (PARTITION BY {keys} ORDER BY first, last ROWS UNBOUNDED PRECEDING) AS island
        FROM (SELECT {keys}, first, last,
                     max(last) OVER (PARTITION BY {keys} ORDER BY first, last
                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach
              FROM ({source})))
    GROUP BY {keys}, island"""


def _step(pos: str, step: int) -> str:
    return f"named_struct('pos', {pos}, 'step', {step})"


def _at_least(source: str, keys: str, needed: str) -> str:
    """Return ranges in which at least `needed` (`keys`, needed) ranges of a query (`keys`, first, last) overlap."""
    return f"""
    SELECT {keys}, pos AS first, after - 1 AS last FROM (
        SELECT {keys}, pos, sum(step) OVER (PARTITION BY {keys} ORDER BY pos ROWS UNBOUNDED PRECEDING) AS depth,
               lead(pos) OVER (PARTITION BY {keys} ORDER BY pos) AS after
        FROM (SELECT {keys}, pos, sum(step) AS step FROM ({source})
              LATERAL VIEW inline(array({_step("first", 1)}, {_step("last + 1", -1)})) AS pos, step
              GROUP BY {keys}, pos))
    JOIN {needed} USING ({keys}) WHERE depth >= needed AND after IS NOT NULL"""


_HOLDING: Final = _islands(
    """SELECT h.life, p.grp, p.idx, h.first, h.last FROM told h
       JOIN part p ON h.life = p.life AND h.peer = p.address WHERE h.kind = 'held'""",
    "life, grp, idx",
)

_SAFE: Final = _at_least(_at_least(_HOLDING, "life, grp", "need"), "life", "enough")

_COVERS: Final = f"""
    SELECT 'S1' AS rule, life, '' AS peer, first, last FROM ({_SAFE})
    UNION ALL SELECT CASE kind WHEN 'sent' THEN 'D1' WHEN 'confirmed' THEN 'A3' ELSE 'P6' END AS rule,
                     life, peer, first, last
              FROM told WHERE kind IN ('said', 'held', 'sent', 'confirmed')
    UNION ALL SELECT 'H1' AS rule, life, peer, first, last FROM told WHERE kind = 'sent'"""

VIEWS: Final = {
    "checked": """
        SELECT *, CASE rule WHEN 'P6' THEN peer WHEN 'A3' THEN concat(life, ' ', peer) ELSE life END AS whose
        FROM (SELECT *, CASE WHEN kind IN ('stable', 'turned') THEN 'S1' WHEN kind = 'acked' THEN 'P6'
                             WHEN kind = 'delivered' THEN 'D1' WHEN kind = 'wrote' THEN 'H1' ELSE 'A3' END AS rule
              FROM told WHERE kind IN ('stable', 'turned', 'acked', 'delivered', 'wrote', 'heard'))""",
    "cover": _islands(_COVERS, "rule, life, peer"),
    "stable": _islands(
        """SELECT t.life, t.first, least(t.last, l.number - 1) AS last FROM told t LEFT JOIN lost l ON t.life = l.life
           WHERE t.kind = 'stable' AND coalesce(t.first < l.number, true)""",
        "life",
    ),
    "began": "SELECT life, min(struct(time, path)) AS instant FROM told WHERE kind = 'stable' GROUP BY life",
}
"""Intermediate views: the facts to check, the facts that cover them, and the stable numbers that no store lost."""

_UNCOVERED: Final = """
    SELECT t.*, CASE WHEN c.last IS NULL THEN t.first ELSE c.last + 1 END AS number
    FROM checked t LEFT SEMI JOIN known k ON t.rule = k.rule AND t.whose = k.whose
    LEFT JOIN cover c ON t.rule = c.rule AND t.life = c.life AND t.peer = c.peer AND t.first BETWEEN c.first AND c.last
    WHERE c.last IS NULL OR c.last < t.last"""

_FIRST_HIT: Final = "min(greatest(t.first, s.first)) AS number, t.kind, t.life, t.peer, t.offset"

_GROUP: Final = "GROUP BY t.path, t.record, t.kind, t.life, t.peer, t.offset, t.first, t.last"

_REUSED: Final = f"""
    SELECT t.path, t.record, 'S2' AS rule, {_FIRST_HIT} FROM told t
    JOIN kin k ON t.life = k.life JOIN began mine ON mine.life = t.life
    JOIN began theirs ON theirs.life = k.other AND theirs.instant < mine.instant
    JOIN stable s ON s.life = k.other AND s.first <= t.last AND s.last >= t.first
    WHERE t.kind = 'stable' {_GROUP}"""

_CUT: Final = f"""
    SELECT t.path, t.record, 'S3' AS rule, {_FIRST_HIT} FROM told t
    JOIN stable s ON s.life = t.life AND s.first <= t.last AND s.last >= t.first
    WHERE t.kind = 'cut' {_GROUP}"""

SUSPECTS: Final = " UNION ALL ".join(f"SELECT {_COLUMNS} FROM ({query})" for query in (_UNCOVERED, _REUSED, _CUT))
"""All suspects except those of E4, which the small facts alone show."""

UNTOLD: Final = f"""
    SELECT DISTINCT t.rule, t.kind, t.life, t.peer FROM checked t
    LEFT ANTI JOIN known k ON t.rule = k.rule AND t.whose = k.whose
    UNION ALL SELECT DISTINCT r.rule, t.kind, t.life, '' AS peer
    FROM told t JOIN lost l ON t.life = l.life AND t.last >= l.number
    LATERAL VIEW explode(array({", ".join(f"'{rule}'" for rule in LOSSES)})) r AS rule WHERE t.kind = 'stable'"""
"""Questions that cannot be decided."""
