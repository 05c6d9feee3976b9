"""The properties of the TLA+ models: each states a rule of the catalogue, and names the mechanism that keeps it."""

from typing import Final

from stablecast.evidence.rules.rule import ModelProperty

# fmt: off
PROPERTIES: Final = (
    ModelProperty(
        "Registration.OneHolder", "R1",
        "No two contexts count on one RegID. Of one context a replaced life may for a while.",
        "activity timeout, lease (formal design, 7.6)",
    ),
    ModelProperty(
        "Registration.Kept", "R2",
        "A client that counts on a RegID holds it in the store's journal, or was replaced there by a later life of its "
        "context.",
        "sync before the answer",
    ),
    ModelProperty(
        "Registration.Inside", "R3",
        "The lease of a client is over before the store's activity timeout.",
        "lease from the sending of the request, generations",
    ),
    ModelProperty("Registration.Granted", "R4", "A client that asks is registered in the end.", "retries"),
    ModelProperty(
        "Registration.Handed", "R5",
        "A client that waits for a dead holder's RegID gets it.",
        "activity timeout",
    ),
    ModelProperty(
        "Registration.NoReturn", "R6",
        "Of one context's lives an earlier one never gets the RegID back from a later one that is active.",
        "one holder",
    ),
    ModelProperty(
        "ProxyElection.NoTheft", "E1",
        "No proxy has the RegID of a source that lives and is registered.",
        "repaired admission (formal design, 7.9)",
    ),
    ModelProperty(
        "ProxyElection.OwnProxy", "E2", "A store runs a proxy exactly while it stands.", "giving way ends the proxy"
    ),
    ModelProperty(
        "ProxyElection.Agreed", "E3",
        "The token that a store holds to is that of the registration it has.",
        "refusals change nothing",
    ),
    ModelProperty(
        "ProxyElection.OneRemains", "E4",
        "Of two proxies that stand one gives way when it learns of the other.",
        "store index breaks ties (T23)",
    ),
    ModelProperty(
        "ProxyElection.NotOver", "E5",
        "No store that waits follows a proxy of a life that it knows to be over.",
        "the token's life",
    ),
    ModelProperty("ProxyElection.NotBack", "E6", "A store never follows a proxy of its own.", "ended tokens (T23)"),
    ModelProperty(
        "ProxyElection.Backed", "E7",
        "Where a quorum is required, no proxy serves that a quorum of stores did not let in.",
        "C-40",
    ),
    ModelProperty(
        "Recovery.InOrder", "D1",
        "In a session every number is delivered once, and with ordered delivery in its turn.",
        "delivery window",
    ),
    ModelProperty(
        "Recovery.NoGap", "D1",
        "Numbers that a session begins behind were consumed before, or were reported lost.",
        "low number, contiguous acknowledgements (formal design, 7.7)",
    ),
    ModelProperty(
        "Recovery.NothingUnread", "A1",
        "Numbers that a store counts as acknowledged were consumed, or were reported lost.",
        "contiguous prefixes",
    ),
    ModelProperty(
        "Recovery.NoRepeat", "A2",
        "Numbers that an answering store knows to be acknowledged are not delivered again.",
        "consensus `highest`",
    ),
    ModelProperty(
        "Recovery.Sought", "D2",
        "No message that a store holds is given up, if there was time to ask every store.",
        "retries in turn, a quorum of every group",
    ),
    ModelProperty(
        "Recovery.Served", "L1", "A receiver that returns gets everything, or a report of its loss.", "retries"
    ),
    ModelProperty(
        "Stability.StableByQuorum", "S1",
        "Messages that a life was told are stable are on the disks of a quorum.",
        "quorums, acknowledgements by content",
    ),
    ModelProperty(
        "Stability.NumbersUnique", "S2",
        "No number was stable for two lives, also where a life that was cut off comes back.",
        "the second round (formal design, 7.6)",
    ),
    ModelProperty(
        "Stability.NoReuse", "S2",
        "No life uses a number again that was stable.",
        "consensus `highest`, a quorum of every group (formal design, 7.1, 7.2)",
    ),
    ModelProperty(
        "Rpp.NoReuse", "S2",
        "At the receivers' pace no life uses a number again that was stable.",
        "messages that went unwritten are synced before they are acknowledged (formal design, 7.8)",
    ),
    ModelProperty(
        "Stability.NoStableLost", "S3",
        "Every message that was ever stable is on the disks of a quorum.",
        "histories, of which the newest can be told: a quorum knows the term of a life before it sends (formal design, "
        "7.3), and a newer one before it goes on (7.6)",
    ),
    ModelProperty(
        "Stability.NoDeadServed", "S3",
        "A store that knows where the present life begins serves no dead message in place of a stable one.",
        "histories, in which forgotten lives never count as agreement (formal design, 7.3)",
    ),
    ModelProperty(
        "Stability.SyncedFirst", "P1",
        "Messages that a store acknowledged are on its disk, of this life, unless the store was told of another life "
        "since.",
        "sync before the acknowledgement",
    ),
    ModelProperty(
        "Rpp.SyncedFirst", "P1",
        "At the receivers' pace, messages that a store acknowledged are on its disk, unless all have consumed them.",
        "sync before the acknowledgement",
    ),
    ModelProperty(
        "Stability.RetainedUntilSettled", "C1",
        "The source has a copy of every message that is not stable.",
        "release rules",
    ),
    ModelProperty(
        "Rpp.PacedRetention", "P2",
        "A paced store lets go of messages that every receiver that counts has consumed, and of no others.",
        "the lowest acknowledgement (formal design, 7.8)",
    ),
    ModelProperty(
        "Rpp.Room", "P3",
        "Messages that are stored have room: the flight is within the capacity.",
        "withheld acknowledgements",
    ),
    ModelProperty(
        "Rpp.Settled", "P4",
        "No acknowledgement is withheld for ever.",
        "looked at again whenever something goes",
    ),
    ModelProperty(
        "Rpp.Progress", "P5",
        "While receivers consume, everything that is sent is settled in the end.",
        "looked at again whenever something goes",
    ),
    ModelProperty(
        "SrsLifetime.Kept", "N1",
        "A service that was told everything has what the context has, and nothing else.",
        "records are marked with the connection that announced them (formal design, 7.10)",
    ),
    ModelProperty(
        "SrsLifetime.OneConnection", "N2",
        "A context is registered on one connection.",
        "hellos are numbered (formal design, 7.10)",
    ),
    ModelProperty(
        "SrsLifetime.OnlyWanted", "N3",
        "A service sends sources to nobody who does not want them.",
        "interest filters (T-404), withdrawals are answered",
    ),
    ModelProperty(
        "SrsLifetime.Informed", "N4",
        "An interested context knows exactly the sources that the service has.",
        "changes behind the full exchange (T-403, T-408)",
    ),
    ModelProperty(
        "SrsLifetime.Once", "N5",
        "Each change is sent to a context once.",
        "a repeated announcement is no news (T-414)",
    ),
    ModelProperty(
        "SrsLifetime.NotBefore", "N6",
        "A source that a service knows goes when its context ends it, when it was potentially down for its own "
        "lifetime, or a while after its transport was lost.",
        "T-413, T-415, T-416, T27",
    ),
    ModelProperty(
        "SrsLifetime.Steady", "N7",
        "A service that restarts drops no source that comes back in time.",
        "the grace after a restart",
    ),
    ModelProperty(
        "SrsLifetime.Found", "N8",
        "A context that stays connected as often as it takes finds a source that stays.",
        "full exchange after each connection",
    ),
    ModelProperty(
        "SrsLifetime.Forgotten", "N9",
        "A context that stays connected forgets a source that does not stay.",
        "lifetimes, the end of a full exchange",
    ),
    ModelProperty(
        "ResolutionPhases.Silent", "Q1",
        "A quiescent endpoint plans no turn, and any other plans one.",
        "phases (T-024)",
    ),
    ModelProperty(
        "ResolutionPhases.Unasked", "Q2",
        "A quiescent endpoint sends again only if a source is asked for, or a receiver has lost what it had.",
        "phases (T-024)",
    ),
    ModelProperty(
        "ResolutionPhases.Answered", "Q3",
        "A receiver that has a session, or knows enough sources, sends no query past the initial phase.",
        "T-307",
    ),
    ModelProperty(
        "ResolutionPhases.NotDeaf", "Q4",
        "A source and a receiver that can reach each other do not both wait for a message.",
        "one side never falls quiet: the receiver, while it has no session (T26)",
    ),
    ModelProperty(
        "ResolutionPhases.Found", "Q5",
        "Endpoints that can reach each other in the end find each other.",
        "one side never falls quiet: the receiver, while it has no session (T26)",
    ),
)
# fmt: on
