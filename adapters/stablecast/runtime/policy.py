"""The policy of a system with TLS: which roles and topics each certificate has.

The file `policy.toml` lies beside the certificates (`runtime.tls` reads it anew when it changes). Without it each
certificate of the authority may do everything. With it nobody may do what no rule allows:

    [[allow]]
    names = ["orders-*"]        # patterns of common names, and of DNS, URI and IP alternative names
    roles = ["source"]          # source, receiver, store, router
    topics = ["orders/.*"]      # expressions for whole topics; all topics without it

Topics limit sources and receivers only. A store stands in for sources and sends what it stored; a router repeats the
messages of others. So both are trusted with all topics.
"""

import re
import tomllib
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.stored_contents import StoredAnswer, StoredQuestion

POLICY = "policy.toml"
"""Name of the file in the directory of the certificates."""

MAX_BYTES = 1024 * 1024
"""Bytes of a policy file."""

MAX_KNOWN = 65_536
"""Answers that are remembered; then all are forgotten. Peers choose topics."""

NAME_KINDS = ("commonName", "DNS", "URI", "IP Address")
"""The kinds of names in a certificate that patterns are compared with."""

KEYS = ("names", "roles", "topics")
"""The keys of a rule."""

Names = tuple[str, ...]
"""The names of a certificate, each as `kind:value`."""


class Right(StrEnum):
    SOURCE = "source"
    RECEIVER = "receiver"
    STORE = "store"
    ROUTER = "router"


Rights = tuple[Right, ...]
"""Roles of which one will do."""

SENDERS = (Right.SOURCE, Right.STORE, Right.ROUTER)
"""Whose stream may be joined: a source, its proxy at a store, and what a router repeats."""

READERS = (Right.RECEIVER, Right.STORE, Right.ROUTER)
"""Who may join a stream."""


class PolicyError(StablecastError):
    """The policy file is wrong; the message says where in it, and the caller which file it is."""


@attrs.frozen
class Rule:
    """One table `allow`. Without `topics` its sources and receivers have all."""

    names: tuple[str, ...]
    rights: frozenset[Right]
    topics: tuple[re.Pattern[str], ...]

    def gives(self, right: Right, topic: str | None) -> bool:
        """Return whether the rule gives a role for a topic, or for any topic at all without one."""
        if right not in self.rights:
            return False
        free = not self.topics or topic is None or right in (Right.STORE, Right.ROUTER)
        return free or any(one.fullmatch(topic) for one in self.topics if topic is not None)


@attrs.frozen
class Policy:
    rules: tuple[Rule, ...]
    _known: dict[tuple[Names, Rights, str | None], bool] = attrs.field(factory=dict, eq=False)

    @classmethod
    def parse(cls, octets: bytes) -> "Policy":
        """Read a policy file. Raises PolicyError."""
        if len(octets) > MAX_BYTES:
            raise PolicyError(f"the policy has more than {MAX_BYTES} bytes")
        try:
            tree = tomllib.loads(octets.decode())
        except (ValueError, RecursionError) as error:
            raise PolicyError(f"the policy is no TOML: {error}") from error
        if unknown := sorted({*tree} - {"allow"}):
            raise PolicyError(f"unknown key {unknown[0]!r}: write tables [[allow]]")
        tables = tree.get("allow", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise PolicyError("'allow' is no list of tables: write [[allow]]")
        return cls(tuple(_rule(number, table) for number, table in enumerate(tables, 1)))

    def allows(self, names: Names, rights: Rights, topic: str | None) -> bool:
        """Return whether a certificate with these names has one of the roles for a topic; None: for any topic."""
        found = self._known.get((names, rights, topic))
        if found is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            pairs = ((rule, right) for rule in self.rules_of(names) for right in rights)
            found = self._known[names, rights, topic] = any(rule.gives(right, topic) for rule, right in pairs)
        return found

    def rules_of(self, names: Names) -> list[Rule]:
        plain = [value for kind, _, value in (name.partition(":") for name in names) if kind in NAME_KINDS]
        return [rule for rule in self.rules if any(fnmatchcase(one, form) for one in plain for form in rule.names)]


def _rule(number: int, table: dict[str, Any]) -> Rule:
    """Return the rule of a table. Raises PolicyError."""
    where = f"[[allow]] number {number}"
    if unknown := sorted({*table} - {*KEYS}):
        raise PolicyError(f"{where}: unknown key {unknown[0]!r}; the keys are {', '.join(KEYS)}")
    for key, value in table.items():
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
            raise PolicyError(f"{where}: '{key}' is no list of texts")
    for key in ("names", "roles"):
        if key not in table:
            raise PolicyError(f"{where}: '{key}' is missing")
    if wrong := [role for role in table["roles"] if role not in [*Right]]:
        raise PolicyError(f"{where}: unknown role {wrong[0]!r}; the roles are {', '.join(Right)}")
    rights = frozenset(map(Right, table["roles"]))
    if "topics" in table and not rights & {Right.SOURCE, Right.RECEIVER}:
        raise PolicyError(f"{where}: 'topics' limits sources and receivers only, and it names neither")
    topics = []
    for text in table.get("topics", ()):
        try:
            topics.append(re.compile(text))
        except (re.error, RecursionError, OverflowError) as error:
            raise PolicyError(f"{where}: {text!r} is no regular expression: {error}") from error
    return Rule(tuple(table["names"]), rights, tuple(topics))


def rights_to_say(message: object) -> Rights:
    """Return the roles of which one is needed to send a message; none: everybody may."""
    match message:
        case msg.StableAck() | msg.Registered() | msg.Refused() | msg.Deregistered() | StoredAnswer():
            return (Right.STORE,)
        case msg.ConsumptionAck() | msg.ReceiverAlive() | StoredQuestion():
            return (Right.RECEIVER,)
        case msg.Register():
            own = Right[message.role.name]
            return (own,) if message.election is None else (own, Right.STORE)  # A store registers as a proxy.
        case msg.Deregister():
            return ()  # Whoever was let in before may leave.
        case msg.Keepalive():
            return (Right[message.role.name], Right.STORE)
        case msg.RetransmitRequest() | msg.LateJoinRequest() | msg.SourceInfoRequest():
            return (Right.RECEIVER, Right.SOURCE, Right.STORE)
        case _:  # Announcements, retransmissions and denials.
            return (Right.SOURCE, Right.STORE)
