"""The judges, and the rules that each is registered for with the part of the rule that it can see.

Each judge has an implementation of its own. A test compares this table with the ids that the implementations report.
"""

from collections.abc import Mapping
from typing import Final

from stablecast.evidence.rules.properties import PROPERTIES
from stablecast.evidence.rules.rule import RuleJudge

ONE_TRACE: Final = RuleJudge(
    "one trace",
    "stablecast.evidence.trace.endpoint_rules",
    "stablecast verify",
    {
        "S1": "source: a number is reported stable only after acknowledgements from as many stores as the groups ask "
        "for",
        "F1": "source: the messages that were sent and are neither stable nor given up are within the flight size",
        "L2": "source: a hold of the transport, or a lack of credit, ends in bounded running time",
        "C1": "source: numbers that are released are acknowledged by as many stores as the groups ask for, or forced "
        "out",
        "D1": "receiver: numbers are delivered in order, none twice, and passed over only when lost or consumed "
        "before; in "
        "arrival order each once",
        "A1": "receiver: only delivered numbers are consumed, only consumed ones acknowledged, and none below the "
        "last one",
        "P1": "store: a number is acknowledged only after a sync covered it, or when the repository keeps it in memory",
        "R2": "store: a registration is granted only after a sync covered it",
        "R6": "store: a RegID does not go back and forth between two lives that one context made of a source",
        "P2": "store: numbers that are reclaimed were consumed by each receiver that blocks, by what the store wrote "
        "down",
    },
)

TRACE_FORM: Final = RuleJudge(
    "trace form",
    "stablecast.evidence.trace.frame_judge",
    "stablecast verify",
    {
        "replay": "each frame is replayed from its snapshot",
        "schema": "each snapshot and record is decoded",
        "numbering": "frames and records are counted",
        "chain": "each snapshot is compared with the end of the frame before",
        "time": "the times of records and frames are compared",
    },
)

_ACROSS: Final[Mapping[str, str]] = {
    "S1": "source: numbers that are reported stable are held by as many stores as the groups ask for, by the stores' "
    "traces",
    "S2": "source: no two lives of a source report the same number stable",
    "S3": "store: numbers that are cut as the tail of an older life were never reported stable",
    "P6": "source: the store's trace has each acknowledgement that the source received",
    "D1": "receiver: each number that is delivered was sent by the life that it is ascribed to",
    "A3": "store: the receiver's trace has each acknowledgement that the store received",
    "E4": "store: no two proxies stand in for a source for more than ten election intervals",
}

TRACES_TOGETHER: Final = RuleJudge(
    "traces together", "stablecast.evidence.trace.cross_rules", "stablecast verify", _ACROSS
)

SQL: Final = RuleJudge(
    "traces together in SQL",
    "stablecast.evidence.spark.cross_rules_sql",
    "stablecast verify --master",
    _ACROSS,
)

CAPTURES: Final = RuleJudge(
    "captures",
    "stablecast.evidence.capture.judge",
    "stablecast verify",
    {
        "P7": "store: an acknowledged number is not above the newest that was sent",
        "A4": "receiver: an acknowledged number is not above the newest that was sent",
        "A1": "receiver: an acknowledged number is not below one that was acknowledged before",
        "D3": "source: each number on a connection follows the one before",
        "S2": "source: a life does not send a number that the stores of another life acknowledged",
        "R1": "store: the process that held a RegID does not use it after another one got it",
        "C1": "source: numbers that are not offered any more are acknowledged by enough stores",
        "P2": "store: a new receiver is offered everything that another receiver has not consumed",
        "M1": "source: a retransmission does not follow a NAK or an NCF too soon",
        "M2": "source: each NAK has an answer",
        "M3": "receiver, source: numbers in NAKs and NCFs are not above the newest",
        "M4": "source: no NAK is repeated after the source's last datagram",
        "M5": "source: numbers that are announced arrive, or are repaired when asked for",
        "M6": "source: new datagrams follow each other by number",
        "W1": "endpoint: each packet decodes",
    },
)

SIMULATOR: Final = RuleJudge(
    "simulator",
    "stablecast.lab.sim.rules",
    "stablecast sim",
    {
        "S1": "source: when it reports a message stable, the disks of enough stores have it synced",
        "S2": "source: no life begins at or below a stable number, and no number is stable for two lives",
        "S3": "store, receiver: no stable message is cut, lost or given up while enough disks survive, unless a "
        "limit drops it",
        "P1": "store: a message that it acknowledges is synced on its disk",
        "P2": "store: each blocking receiver that is registered has consumed the messages that it reclaims",
        "C1": "source: a copy that it drops is stable, and confirmed where it asks for that, unless a limit forces "
        "it out",
        "F1": "source: messages and bytes in flight are within the flight size",
        "R1": "client: no other live process counts on the same RegID at the same store",
        "R2": "store: a registration that it grants is synced on its disk",
        "D1": "receiver: deliveries are in order, or in arrival order once, with their payload, of the right life, "
        "without an "
        "unreported gap, also across restarts; an application gets each message of a run once, and those of a life "
        "in order",
        "A1": "receiver: numbers that it acknowledges are consumed, and never less than before",
        "E8": "store: when all is quiet, one proxy stands in for a source that stays away, and none for one that is "
        "there",
        "L1": "all: when all faults are over, everything sent becomes stable and is delivered everywhere",
        "X1": "all: no machine and no driver raises",
    },
)

MODELS: Final = RuleJudge(
    "models",
    "tla",
    "stablecast model check",
    {one.rule: ", ".join(other.path for other in PROPERTIES if other.rule == one.rule) for one in PROPERTIES},
)

TORTURE: Final = RuleJudge(
    "torture",
    "adapters/stablecast/lab/whole/history_checker.py",
    "make torture",
    {
        "S3": "lost: each stable message was delivered to every receiver, a late one included",
        "S2": "reused: one number of one owner and topic stands for one stable message",
        "D1": "changed, order, twice: each run gets messages as they were sent, in order, none twice",
        "A5": "confirmed: each message that a receiver confirmed was delivered to it before",
        "L1": "hang: after all faults each source falls silent with everything stable and delivered",
        "A6": "repeated: no message consumed 3 s before a crash comes again",
        "L3": "blocked: messages become stable while a minority of the disks fails",
        "X2": "ended: no process ends unless the plan ends it",
        "X1": "traceback: no process writes a traceback",
    },
)
"""The word before the colon is the checker's own: it imports nothing from the project, this table included."""

JUDGES: Final = (ONE_TRACE, TRACE_FORM, TRACES_TOGETHER, SQL, CAPTURES, SIMULATOR, MODELS, TORTURE)


def judges_of(rule: str) -> list[RuleJudge]:
    """Return the judges that are registered for a rule."""
    return [judge for judge in JUDGES if rule in judge.checks]
