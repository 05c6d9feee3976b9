"""TLS with certificates on both sides of every TCP connection between contexts and stores, by one setting.

The setting names a directory with `certificate.pem`, `key.pem` and `authority.pem`, and holds for the whole process.
`use` sets it (`stablecast --tls`, `tls` in a daemon's configuration, `stablecast.client.use_certificates`), or
STABLECAST_TLS in the environment, which child processes inherit. With it, every port demands a certificate of that
authority, and every connection shows one: request ports, store ports, source streams, the resolution service (SRS).

Either all processes of a system have the setting or none. Use an authority for this system alone, because every
certificate that it signed is accepted. Names in certificates are not compared with addresses, which change; they tell
processes apart (`runtime.origins`), and a fourth file, `policy.toml`, may say what each may be (`runtime.policy`).
"""

import logging
import ssl
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.runtime import machine
from stablecast.runtime.policy import POLICY, Names, Policy, PolicyError, Right
from stablecast.text import refusal

VARIABLE = "STABLECAST_TLS"
"""The environment variable that names the directory."""

DATAGRAMS, UNPROTECTED = "STABLECAST_TLS_DATAGRAMS", "unprotected"
"""The environment variable that permits transports over datagrams with TLS, and its value."""

CERTIFICATE, KEY, AUTHORITY = "certificate.pem", "key.pem", "authority.pem"
"""Names of the files in the directory."""

HANDSHAKE_SECONDS = 10.0
"""Time limit of a TLS handshake."""

_FLIGHTS = 4
"""Turns of each side within which a handshake in memory ends; TLS 1.3 takes two."""

RELOAD_SECONDS = 1.0
"""Least time between two looks at the files of the directory."""

EXPIRY_DAYS = 14
"""Days before its end at which a certificate of a peer is warned of."""

EVERY = 1000
"""Failed handshakes of one cause: the first is logged, and then one in this many."""

refused: Counter[str] = Counter()
"""The failed handshakes of this process, by cause, at its ports and at those that it connected to."""

_expiring: set[str] = set()
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "BAD_RECORD_TYPE", "UNSUPPORTED_PROTOCOL")
_logger = logging.getLogger("stablecast")


def cause(error: BaseException | None) -> str:
    """Return why a connection with TLS failed, for people; empty for an error that is none of TLS."""
    if not isinstance(error, ssl.SSLError):
        return ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: this process does not accept the certificate of the peer: {error.verify_message}"
    reason = error.reason or "the handshake failed"
    if "ALERT" in reason:
        words = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return f"TLS: the peer does not accept the certificate of this process: {words or reason}"
    if reason in _PLAIN:
        return "TLS: the peer does not use TLS, or another version"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "TLS: the peer shows no certificate"
    return f"TLS: {reason.replace('_', ' ').lower()}"


class _Handshake(ssl.SSLObject):
    """A TLS connection that counts and logs a failed handshake: event loops report none at a listening port."""

    def do_handshake(self) -> None:
        """Shake hands, as far as the bytes that came allow."""
        try:
            super().do_handshake()
            _warn_of_expiry(self.getpeercert() or {})
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            why = cause(error)
            refused[why] += 1
            if refused[why] % EVERY == 1:
                side = "at a port of this process" if self.server_side else "to a port of another process"
                _logger.warning("a connection %s failed (%d so far). %s", side, refused[why], why)
            raise


class TlsError(StablecastError):
    """The certificates cannot be used; the message names the directory and what it needs."""


def use(directory: Path) -> None:
    """Use TLS with the files of a directory for all later ports and connections of this process.

    Raises:
        TlsError: A file is missing or unusable, or the process uses another directory.
    """
    name = str(directory.absolute())
    known = machine.process.environment.get(VARIABLE)
    if known and Path(known).absolute() != directory.absolute():
        raise TlsError(f"this process uses TLS with {known} already; use the same directory, or another process")
    for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH):
        _context(name, purpose)
    machine.process.environment[VARIABLE] = name


def server() -> "Certificates | None":
    """Return the context for a listening port, or None without TLS. Raises TlsError."""
    return _context(machine.process.environment.get(VARIABLE, ""), ssl.Purpose.CLIENT_AUTH)


def client() -> "Certificates | None":
    """Return the context for an outgoing connection, or None without TLS. Raises TlsError."""
    return _context(machine.process.environment.get(VARIABLE, ""), ssl.Purpose.SERVER_AUTH)


def handshake() -> float | None:
    """Return the time limit of a handshake in seconds, or None without TLS, as the event loop demands."""
    return HANDSHAKE_SECONDS if machine.process.environment.get(VARIABLE) else None


def policy() -> Policy | None:
    """Return the policy of this process as its file is now; None without TLS or without the file. Raises TlsError."""
    context = server()
    return None if context is None else context.current().policy


def require_right(right: Right, topic: str, what: str) -> None:
    """Refuse to begin what the other processes would refuse by their policy, which is that of this process.

    Raises:
        TlsError: The policy does not give the certificate of this process the role. The text begins with `what`.
    """
    rules = policy()
    if rules is None:
        return
    own = own_names(machine.process.environment[VARIABLE])
    if not rules.allows(own, (right,), topic):
        topics = f" for topic {topic!r}" if topic else ""
        raise TlsError(f"{what}: {POLICY} does not give {', '.join(own)} the role {right}{topics}")


def own_names(directory: str) -> Names:
    """Return the names in the certificate of a directory, as peers with its authority see it. Raises TlsError."""
    caller, listener = _load(directory, ssl.Purpose.SERVER_AUTH), _load(directory, ssl.Purpose.CLIENT_AUTH)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [caller.wrap_bio(back, there), listener.wrap_bio(there, back, server_side=True)]
    try:
        for end in ends * _FLIGHTS:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
        return names_of(ends[0].getpeercert() or {})
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"peers cannot accept {CERTIFICATE} in {directory}. {cause(error)}") from error


def names_of(certificate: Mapping[str, Any]) -> Names:
    """Return the names in a certificate, each with its kind."""
    subject = (one for part in certificate.get("subject", ()) for one in part)
    return tuple(f"{kind}:{value}" for kind, value in (*subject, *certificate.get("subjectAltName", ())))


def require_stream(place: str) -> None:
    """Refuse a transport over datagrams with TLS, because anybody could put messages into it.

    Raises:
        TlsError: TLS is on, and the risk was not accepted. The text names `place` and the variable that accepts it.
    """
    environment = machine.process.environment
    if environment.get(VARIABLE) and environment.get(DATAGRAMS) != UNPROTECTED:
        raise TlsError(
            f"{place} would use datagrams, which TLS does not protect: use LBT-TCP, or set {DATAGRAMS}={UNPROTECTED}"
        )


class Certificates(ssl.SSLContext):
    """A context that makes each connection with the newest files of its directory.

    Listeners keep the context that they were given, and a context must not change while threads shake hands with it. So
    changed files make another one, which also trusts no authority that is gone.
    """

    directory: str
    purpose: ssl.Purpose
    newest: "Certificates"
    policy: Policy | None
    looked_at = 0
    state = ""

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """Return a connection with the newest files."""
        newest = self.current()
        return super().wrap_bio(*arguments, **named) if newest is self else newest.wrap_bio(*arguments, **named)

    def current(self) -> "Certificates":
        """Return the context with the newest files; those that do not fit leave the old ones in use."""
        now = machine.clock.monotonic_ns()
        if now - self.looked_at >= RELOAD_SECONDS * SECOND:
            self.looked_at = now
            state = _state(self.directory)
            if state != self.state:
                self.state = state
                self._renew()
        return self.newest

    def _renew(self) -> None:
        try:
            loaded = _load(self.directory, self.purpose)
            if self.newest.policy is not None and loaded.policy is None:
                raise TlsError(f"{POLICY} is gone, which would allow everything: restart to do without it")  # noqa: TRY301
            self.newest = loaded
        except TlsError as error:
            _logger.warning("the certificates and the policy of before stay in use: %s", error)
        else:
            _logger.warning("new connections use the renewed certificates and policy in %s", self.directory)


def _warn_of_expiry(certificate: Mapping[str, Any]) -> None:
    """Log once that a certificate ends soon, at whoever sees it."""
    end = certificate.get("notAfter")
    if end is None or ssl.cert_time_to_seconds(end) - machine.clock.wall_ns() / SECOND > EXPIRY_DAYS * 86_400:
        return
    names = ", ".join(value for part in certificate.get("subject", ()) for _, value in part)
    if f"{names} {end}" not in _expiring:
        _expiring.add(f"{names} {end}")
        _logger.warning("the certificate of a peer (%s) ends on %s: renew it", names, end)


@cache
def _context(directory: str, purpose: ssl.Purpose) -> Certificates | None:
    return _load(directory, purpose) if directory else None


def _state(directory: str) -> str:
    """Return a digest of the files of a directory; empty if one is missing."""
    try:
        octets = [machine.files.read_bytes(Path(directory) / name) for name in (CERTIFICATE, KEY, AUTHORITY)]
    except OSError:
        return ""
    with suppress(FileNotFoundError):
        octets.append(machine.files.read_bytes(Path(directory) / POLICY))
    return sha256(b"".join(octets)).hexdigest()


def _policy(directory: str) -> Policy | None:
    """Return the policy in a directory; None without the file. Raises PolicyError, OSError."""
    try:
        return Policy.parse(machine.files.read_bytes(Path(directory) / POLICY))
    except FileNotFoundError:
        return None


def _load(directory: str, purpose: ssl.Purpose) -> Certificates:
    """Make a context with the files of a directory. Raises TlsError."""
    place = Path(directory)
    context = Certificates(ssl.PROTOCOL_TLS_SERVER if purpose is ssl.Purpose.CLIENT_AUTH else ssl.PROTOCOL_TLS_CLIENT)
    context.directory, context.purpose, context.newest = directory, purpose, context
    context.looked_at, context.state = machine.clock.monotonic_ns(), _state(directory)
    context.sslobject_class = _Handshake
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # Earlier versions send certificates in the clear.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(place / AUTHORITY)
        context.load_cert_chain(place / CERTIFICATE, place / KEY)
        context.policy = _policy(directory)
    except PolicyError as error:
        raise TlsError(f"{place / POLICY}: {error}") from error
    except OSError as error:
        files = f"{CERTIFICATE}, {KEY} and {AUTHORITY}"
        raise TlsError(f"TLS needs {directory} to hold {files}: {refusal(error)}") from error
    return context
