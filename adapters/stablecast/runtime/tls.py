"""TLS on every TCP path between contexts and stores, with certificates on both sides, by one setting.

The setting names a directory with `certificate.pem`, `key.pem` and `authority.pem`. It is one for a process: `use`,
which `stablecast --tls`, `tls` in a daemon's configuration and `stablecast.client.use_certificates` are, or
STABLECAST_TLS in the environment, which a process leaves to those that it starts. Where it is set, every port asks for
a certificate of that authority and every connection shows one: request ports, store ports, source streams, the service
of resolution (SRS). All processes of a system have it, or none. The authority is to be one of its own: whoever it has
signed belongs. Names in certificates are not compared, for sources and stores are known by addresses that move.
"""

import os
import ssl
from functools import cache
from pathlib import Path

from stablecast.core.errors import StablecastError

VARIABLE = "STABLECAST_TLS"
"""The environment variable that names the directory."""

CERTIFICATE, KEY, AUTHORITY = "certificate.pem", "key.pem", "authority.pem"
"""Files of the directory."""

HANDSHAKE_SECONDS = 10.0
"""How long a peer may take to show its certificate."""


class TlsError(StablecastError):
    """The certificates cannot be used; the message names the directory and what it needs."""


def use(directory: Path) -> None:
    """Every port and connection that this process makes from now on has TLS with what is in this directory.

    Raises:
        TlsError: It lacks something, or the process uses another.
    """
    name = str(directory.absolute())
    known = os.environ.get(VARIABLE)
    if known and Path(known).absolute() != directory.absolute():
        raise TlsError(f"this process has TLS with {known} already; use the same directory, or another process")
    for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH):
        _context(name, purpose)
    os.environ[VARIABLE] = name


def server() -> ssl.SSLContext | None:
    """For a port that is listened at; None: without TLS. Raises TlsError."""
    return _context(os.environ.get(VARIABLE, ""), ssl.Purpose.CLIENT_AUTH)


def client() -> ssl.SSLContext | None:
    """For a connection that is made; None: without TLS. Raises TlsError."""
    return _context(os.environ.get(VARIABLE, ""), ssl.Purpose.SERVER_AUTH)


def handshake() -> float | None:
    """How long a handshake may take, as the event loop wants to hear it: nothing without TLS."""
    return HANDSHAKE_SECONDS if os.environ.get(VARIABLE) else None


@cache
def _context(directory: str, purpose: ssl.Purpose) -> ssl.SSLContext | None:
    if not directory:
        return None
    place = Path(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if purpose is ssl.Purpose.CLIENT_AUTH else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(place / AUTHORITY)
        context.load_cert_chain(place / CERTIFICATE, place / KEY)
    except OSError as error:
        raise TlsError(
            f"TLS needs {directory} to hold {CERTIFICATE}, {KEY} and {AUTHORITY}: {error.strerror or error}"
        ) from error
    return context
