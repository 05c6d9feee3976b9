"""The catalogue of invariants, each declared once.

Judges keep implementations of their own and register for rules in `judges`. A rule has one meaning for all of them; a
judge may see only a part of it.
"""

from collections.abc import Mapping
from typing import Final

from stablecast.evidence.rules.properties import PROPERTIES
from stablecast.evidence.rules.rule import InvariantRule

KEEP_TRACES: Final = (
    "Keep the traces. Print the record with `stablecast trace dump` and its history with `stablecast trace why "
    "NUMBER`. "
    "Then report a defect with both."
)
KEEP_CAPTURE: Final = (
    "Look at the frame with `stablecast capture decode`. If the capture is whole, its sender is wrong. "
    "Report it to the vendor of that endpoint, with the capture."
)
READ_MODEL: Final = (
    "Run `stablecast model check` and `stablecast model equal` on the model and read the shortest way to the state. "
    "The last change of the protocol, of the core or of the model is wrong."
)
REPEAT_TRACE: Final = (
    "The file was changed, or another release of the core recorded it. Judge the original with its release. "
    "If it is the original, report a defect with the file."
)

DISKS: Final = "Acknowledgements at the source; for more than its belief the traces or the disks of the stores."


def _of_model(rule: str, needs: str, breaks: str) -> InvariantRule:
    """Return a rule that models alone judge: its property has name and statement."""
    stated = next(one for one in PROPERTIES if one.rule == rule)
    return InvariantRule(rule, stated.name, stated.statement, needs, breaks, READ_MODEL)


_RULES: Final = (
    # Stability.
    InvariantRule(
        "S1",
        "StableByQuorum",
        "A source reports a message stable only when as many stores hold it as the rules of its groups ask for.",
        DISKS,
        "A source that counts a store twice, counts stores that are away, or believes an acknowledgement of another "
        "life.",
        KEEP_TRACES + " Treat messages of this source as not yet safe.",
    ),
    InvariantRule(
        "S2",
        "NoReuse",
        "A number that is stable for one life of a source is used by no other life, so it is never stable for two.",
        "Two lives of one source: their sent and stable numbers, and the RegID that ties them together.",
        "A life that resumes at the newest number instead of the highest stable one; stores of a quorum that lost "
        "disks.",
        KEEP_TRACES + " First rule out that a quorum of the stores lost its disks.",
    ),
    InvariantRule(
        "S3",
        "NoStableLost",
        "While a quorum of the disks survives, no stable message is cut, lost, given up, or replaced by a dead one.",
        "Stable numbers, and what stores cut, hold and serve.",
        "A cut below the newest stable number; forgotten lives that count as agreement; a limit that drops too much.",
        KEEP_TRACES + " Stop the stores before they reclaim more.",
    ),
    # Stores and pace.
    InvariantRule(
        "P1",
        "SyncedFirst",
        "A store acknowledges a message only after it is on its disk, or kept in memory where the repository asks no "
        "more.",
        "Writes, syncs and stability acknowledgements of one store.",
        "An acknowledgement that does not wait for the sync; a sync that counts for a later write.",
        KEEP_TRACES + " A crash of this store may lose messages that sources count on.",
    ),
    InvariantRule(
        "P2",
        "PacedRetention",
        "A receiver-paced store removes a message only when every registered receiver that blocks has consumed it.",
        "Clients of a store and their acknowledgements, and what the store reclaims or offers.",
        "The fastest receiver sets the pace; a receiver that nobody knows yet is not counted.",
        KEEP_TRACES + " The receivers that are named may miss messages.",
    ),
    _of_model(
        "P3",
        "The state of store and source at one instant.",
        "A flight that is not compared with the capacity at registration.",
    ),
    _of_model(
        "P4",
        "The state of the store at one instant.",
        "A withheld acknowledgement that is not looked at again when something goes.",
    ),
    _of_model("P5", "All behaviours of the model.", "A pause that no message ends."),
    InvariantRule(
        "P6",
        "AckGiven",
        "A stability acknowledgement that a source receives is one that the store sent.",
        "The complete traces of the source and of the store.",
        "A forged or damaged acknowledgement; a store at the address of another one.",
        KEEP_TRACES + " Look for a second process at the store's address.",
    ),
    InvariantRule(
        "P7",
        "AckOfSent",
        "A store acknowledges only messages that were sent.",
        "The stream of a source and the acknowledgements of its stores, in one capture.",
        "An acknowledgement beyond the newest message; numbers of another life.",
        KEEP_CAPTURE,
    ),
    # Delivery and acknowledgement.
    InvariantRule(
        "D1",
        "InOrder",
        "A receiver delivers each message once, of the life that sent it, and in order if order is asked for. It "
        "passes "
        "over, and begins behind, only what was consumed before or is reported lost.",
        "Deliveries and losses of a receiver; for the life the trace of the source.",
        "A session that begins at the newest number; a gap that nobody reports; a restart that forgets what was "
        "consumed.",
        KEEP_TRACES + " The application may have missed or repeated messages.",
    ),
    _of_model(
        "D2",
        "The state of receiver and stores at one instant.",
        "The same store is asked again; one group of stores is asked and no other.",
    ),
    InvariantRule(
        "D3",
        "SentInOrder",
        "A source sends its numbers in order on each of its connections, none twice.",
        "Both directions of a connection, without lost packets.",
        "A source that skips or repeats a number on a stream.",
        KEEP_CAPTURE,
    ),
    InvariantRule(
        "A1",
        "NothingUnread",
        "A receiver acknowledges only what was consumed or lost, and never less than before, unless the application "
        "acknowledges itself.",
        "Deliveries, consumption and acknowledgements of one receiver.",
        "An acknowledgement at delivery; a piece of a large message that counts as the whole.",
        KEEP_TRACES + " After a restart this receiver may miss messages.",
    ),
    _of_model(
        "A2",
        "Acknowledgements at the stores that answered, and the deliveries of the next session.",
        "A session that begins at the lowest or the majority's acknowledgement.",
    ),
    InvariantRule(
        "A3",
        "ConsumptionGiven",
        "A consumption acknowledgement that a store receives is one that the receiver sent.",
        "The complete traces of the store and of the receiver.",
        "A forged or damaged acknowledgement; a second process with the receiver's RegID.",
        KEEP_TRACES + " Look for a second process with this RegID.",
    ),
    InvariantRule(
        "A4",
        "ConsumptionOfSent",
        "A receiver acknowledges only messages that were sent.",
        "The stream of a source and the acknowledgements of its receivers, in one capture.",
        "An acknowledgement beyond the newest message; numbers of another life.",
        KEEP_CAPTURE,
    ),
    InvariantRule(
        "A5",
        "ConfirmedDelivered",
        "A message that a receiver confirms was delivered to that receiver before.",
        "The histories of sources and receivers, on one clock.",
        "A confirmation of a lost message; a confirmation for another receiver.",
        "Keep the directory of the run and look for the message in the history of that receiver.",
    ),
    InvariantRule(
        "A6",
        "AcknowledgedInTime",
        "A message consumed 3 s before a crash is not delivered again, where nothing kept it from being acknowledged.",
        "The histories of two runs of one receiver, on one clock.",
        "An acknowledgement that waits for more messages; a loop that is kept busy.",
        "Keep the directory of the run and look at the receiver's acknowledgements before its crash.",
    ),
    # Sources.
    InvariantRule(
        "C1",
        "RetainedUntilSettled",
        "A source keeps its copy of a message until it is stable, and confirmed where it asks for that, unless a limit "
        "forces it out.",
        "The messages that the source sent and released, and their acknowledgements.",
        "A release at the first acknowledgement; a life that forgets what waits.",
        KEEP_TRACES + " A store that lacks these messages cannot get them any more.",
    ),
    InvariantRule(
        "F1",
        "FlightKept",
        "A source that blocks never has more messages in flight than its flight size.",
        "The messages that the source sent, and those that became stable or were given up.",
        "A send that is not counted; credit that returns twice.",
        KEEP_TRACES,
    ),
    # Liveness.
    InvariantRule(
        "L1",
        "Served",
        "After the last fault everything that was sent becomes stable, and every receiver gets it or a report of its "
        "loss.",
        "The run from its last fault until nothing happens any more.",
        "A request that is not repeated; a registration that nobody renews.",
        "Replay the schedule, or read the lasso of the model: the endpoint that waits last has lost its timer.",
    ),
    InvariantRule(
        "L2",
        "GoesOn",
        "A source that waits for its transport, or for credit, continues.",
        "One trace of the source, as long as it ran.",
        "A rate limit that never ends a hold; credit that is not returned; a store that answers and does not "
        "acknowledge.",
        KEEP_TRACES + " First check the rate limits of the context and the stores that the sentence names.",
    ),
    InvariantRule(
        "L3",
        "MinorityHarmless",
        "While the disks of a minority fail, and nothing else does, messages become stable.",
        "The histories of a run and its faults, on one clock.",
        "A source that waits for every store.",
        "Keep the directory of the run and look at the answers of the other stores.",
    ),
    # Registrations and proxies.
    InvariantRule(
        "R1",
        "OneHolder",
        "One live process counts on a RegID at a store. A replaced life of the same context may for a while.",
        "Grants of a store, and the use that each process makes of them.",
        "A lease that counts from the answer; a store that hands over a RegID too early or forgets it at a restart.",
        "Stop one of the two processes, or give it another session id. " + KEEP_TRACES,
    ),
    InvariantRule(
        "R2",
        "Kept",
        "A store grants a registration only after it is in its journal, so a client that counts on it is held there, "
        "or "
        "was replaced by a later life of its context.",
        "Writes, syncs and grants of one store.",
        "A grant that does not wait for the sync.",
        KEEP_TRACES + " After a crash this store may give the RegID to another client.",
    ),
    _of_model(
        "R3", "Client and store on one clock.", "A lease that counts from the answer, or that any generation renews."
    ),
    _of_model("R4", "All behaviours of the model.", "A request that is not repeated."),
    _of_model("R5", "All behaviours of the model.", "A holder that stays for ever."),
    InvariantRule(
        "R6",
        "NoReturn",
        "An earlier life of a context never gets a RegID back from a later active one.",
        "The clients that a store writes down.",
        "A store that lets two lives of one context take turns.",
        KEEP_TRACES,
    ),
    _of_model("E1", "Source, stores and proxies at one instant.", "An admission that prefers the proxy."),
    _of_model("E2", "The state of one store.", "A store that gives way and leaves its proxy running."),
    _of_model("E3", "The state of one store.", "A refused registration that changes the token."),
    InvariantRule(
        "E4",
        "OneRemains",
        "One of two proxies for a source gives way when its store learns of the other.",
        "The proxies of all stores that stand in for one source, until long after the election.",
        "Two tokens of the same rank without a tie-break.",
        KEEP_TRACES + " Both proxies may number messages: stop one of the stores.",
    ),
    _of_model("E5", "The state of one store.", "A token that is compared without its life."),
    _of_model("E6", "The state of one store.", "Ended tokens that are forgotten."),
    _of_model("E7", "All stores at one instant.", "A proxy that serves with its own store alone."),
    InvariantRule(
        "E8",
        "OneProxy",
        "When all is quiet, one proxy stands in for a source that stays away, if there are proxies, and none for a "
        "source "
        "that is there.",
        "All processes, after the last fault.",
        "A proxy that continues when its source has returned; an election without a winner.",
        "Replay the schedule and read the elections of the stores in their traces.",
    ),
    # Resolution.
    _of_model("N1", "Context and service at one instant.", "Records of an old connection that are not swept."),
    _of_model("N2", "Context and service at one instant.", "A hello of an old connection that arrives late."),
    _of_model("N3", "Context and service at one instant.", "A withdrawal of interest that is not answered."),
    _of_model("N4", "Context and service at one instant.", "A change that is lost during the full exchange."),
    _of_model("N5", "The messages of one connection.", "A source that is announced again and passed on as news."),
    _of_model(
        "N6", "All steps of the model.", "One lifetime for all sources; a lost connection that ends them at once."
    ),
    _of_model("N7", "All steps of the model.", "A restart without a grace period."),
    _of_model("N8", "All behaviours of the model.", "A connection without a full exchange."),
    _of_model("N9", "All behaviours of the model.", "A source without a lifetime."),
    _of_model(
        "Q1", "The state of one endpoint.", "A phase that plans no turn, or one that plans another after its end."
    ),
    _of_model("Q2", "All steps of the model.", "A word of another endpoint that restarts the phases."),
    _of_model("Q3", "The state of one receiver.", "A receiver that queries for the sake of querying."),
    _of_model("Q4", "Both endpoints at one instant.", "Phases that end on both sides, as documented."),
    _of_model("Q5", "All behaviours of the model.", "Phases that end on both sides, as documented."),
    # Reliable multicast and unicast transports, and the form of packets.
    InvariantRule(
        "M1",
        "IgnoreInterval",
        "LBT-RM, LBT-RU: a source sends a number again only when the ignore interval is over.",
        "The datagrams of one session, near the source.",
        "A source that answers every NAK at once.",
        KEEP_CAPTURE,
    ),
    InvariantRule(
        "M2",
        "NakAnswered",
        "LBT-RM, LBT-RU: a source answers a NAK with the datagram, an NCF, or a trail that has passed it.",
        "The datagrams of one session in both directions.",
        "A source that loses NAKs, or ends before its receivers have recovered.",
        KEEP_CAPTURE,
    ),
    InvariantRule(
        "M3",
        "NakOfSent",
        "LBT-RM, LBT-RU: a number in a NAK or an NCF was sent.",
        "The datagrams of one session in both directions.",
        "A receiver that counts beyond the newest datagram.",
        KEEP_CAPTURE,
    ),
    InvariantRule(
        "M4",
        "SourceStays",
        "LBT-RM, LBT-RU: a source stays until its receivers have recovered.",
        "The end of one session in both directions.",
        "A source that closes while NAKs arrive.",
        KEEP_CAPTURE,
    ),
    InvariantRule(
        "M5",
        "AnnouncedAvailable",
        "LBT-RM, LBT-RU: receivers can get everything that a session message announces, the last datagrams too.",
        "The session messages and datagrams of one session.",
        "A session message with a lead that was never sent.",
        KEEP_CAPTURE,
    ),
    InvariantRule(
        "M6",
        "NewOnce",
        "LBT-RM, LBT-RU: a source sends a number as new once, and sends numbers in order.",
        "The datagrams of one session.",
        "A retransmission without its flag.",
        KEEP_CAPTURE,
    ),
    InvariantRule(
        "W1",
        "Readable",
        "Everything that an endpoint sends is well formed.",
        "Whole packets of an endpoint of which other packets can be decoded.",
        "A sender of another version; a defect in a codec.",
        KEEP_CAPTURE,
    ),
    # Processes.
    InvariantRule(
        "X1",
        "NoDefect",
        "No machine and no driver raises an exception that nobody handles.",
        "The process itself, or its standard error.",
        "A state that nobody thought of.",
        "Read the traceback. Report a defect with the schedule, or with the directory of the run.",
    ),
    InvariantRule(
        "X2",
        "NoExit",
        "No process ends unless it is ended from outside, or loses something that it cannot do without.",
        "The exit status of each process, and the faults of the run.",
        "An error that ends a daemon instead of one connection.",
        "Read the last lines of the process's log. Report a defect with the directory of the run.",
    ),
    # The form of a trace.
    InvariantRule(
        "replay",
        "replay",
        "The same core, in the same state, answers the same input with the recorded effects and ends in the recorded "
        "state.",
        "One frame of a trace.",
        "Another release of the core; a changed file; state outside of the machine.",
        REPEAT_TRACE,
    ),
    InvariantRule(
        "schema",
        "schema",
        "Every snapshot and record of a trace fits the schema of its version.",
        "One frame of a trace.",
        "A changed file.",
        REPEAT_TRACE,
    ),
    InvariantRule(
        "numbering",
        "numbering",
        "Frames and records of a trace are numbered without a gap that the recorder did not announce.",
        "Neighbouring frames of a trace.",
        "Frames that were removed, repeated or put in another order.",
        REPEAT_TRACE,
    ),
    InvariantRule(
        "chain",
        "chain",
        "Every frame begins with the endpoint and the state with which the frame before it ended.",
        "Neighbouring frames of a trace.",
        "Frames of two traces in one file.",
        REPEAT_TRACE,
    ),
    InvariantRule(
        "time",
        "time",
        "The clock of a trace never goes back.",
        "Neighbouring records of a trace.",
        "A changed file; a clock that is not monotonic.",
        REPEAT_TRACE,
    ),
)

RULES: Final[Mapping[str, InvariantRule]] = {rule.id: rule for rule in _RULES}
"""Rules by id, in the order of the spec."""
