"""The configuration of a service: a TOML file with the documented names, or the same as keyword arguments.

[srs]
interface = "10.29.3.41"
port = 12000
state-lifetime = 86400          # seconds; the default of the next two (T-417)
source-state-lifetime = 86400
interest-state-lifetime = 86400
source-leave-backoff = 500      # milliseconds

[daemon]
pid-file = "srs.pid"

[daemon.log]
type = "file"
name = "srs.log"
frequency = "daily"             # or "hourly", "disable"
size = 10                       # millions of bytes; 0: not by size
max-history = 10                # rolled files; 0: any number
total-size-cap = 1000           # millions of bytes; 0: any size
compression = "gzip"            # of rolled files; or "zip", "none"

[daemon.monitor]
publishing-interval = 60000     # milliseconds between statistics in the log, as JSON; 0: none

The same in its documented XML form is read by `xml_config`.
"""

import tomllib
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.runtime.address import MAX_PORT
from stablecast.runtime.logs import Compression, Frequency, Rolling
from stablecast.transports.resolution.srs.settings import ServiceConfig

DEFAULT_PORT = 27_000
MAX_LIFETIME_SECONDS = 20_736_000
MAX_BACKOFF_MS = 60_000
MAX_COUNT = 1_000_000
MILLION = 1_000_000
MIN_PUBLISHING_MS = 200
MAX_PUBLISHING_MS = 7_776_000_000


class SrsConfigError(StablecastError):
    """A configuration that cannot be used; the message names the file, the key and what it may be."""


@attrs.frozen
class LogConfig:
    """Where log lines go.

    Attributes:
        name: The file; None: the console (T-501).
        frequency: When it rolls by the clock.
        size: Millions of bytes after which it rolls; 0: not by size.
        max_history: Rolled files that are kept; 0: any number.
        total_size_cap: Millions of bytes of rolled files that are kept; 0: any size.
        compression: Of rolled files.
    """

    name: Path | None = None
    frequency: Frequency = Frequency.DISABLE
    size: int = 10
    max_history: int = 10
    total_size_cap: int = 1000
    compression: Compression = Compression.NONE

    def rolling(self) -> Rolling:
        """The same for the file."""
        size, total = (MILLION * millions for millions in (self.size, self.total_size_cap))
        return Rolling(self.frequency, size, self.max_history, total, self.compression)


@attrs.frozen
class SrsConfig:
    """Where a service listens, how long it keeps what is potentially down (seconds; 0: for ever), where it logs.

    Attributes:
        publishing_interval: Milliseconds between statistics in the log; 0: none.
        pid_file: Gets the number of the process as long as it serves.
    """

    interface: str = "localhost"
    port: int = DEFAULT_PORT
    state_lifetime: int = 86_400
    source_state_lifetime: int | None = None
    interest_state_lifetime: int | None = None
    source_leave_backoff: int = 500
    log: LogConfig = LogConfig()
    publishing_interval: int = 0
    pid_file: Path | None = None

    def service(self) -> ServiceConfig:
        """The configuration of the machine."""
        source, interest = self.source_state_lifetime, self.interest_state_lifetime
        return ServiceConfig(
            source_lifetime_ns=(self.state_lifetime if source is None else source) * SECOND,
            interest_lifetime_ns=(self.state_lifetime if interest is None else interest) * SECOND,
            leave_backoff_ns=self.source_leave_backoff * MILLISECOND,
        )


def load(path: Path) -> SrsConfig:
    """Reads a TOML file.

    Raises:
        SrsConfigError: If it is no TOML, or has a wrong key or value.
        OSError: If it cannot be read.
    """
    try:
        return parse(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SrsConfigError(f"{path} is no TOML: {error}") from error
    except SrsConfigError as error:
        raise SrsConfigError(f"{path}: {error}") from error


def parse(tables: Mapping[str, Any]) -> SrsConfig:
    """The configuration that parsed TOML means. Raises SrsConfigError."""
    _check("the file", tables, {"srs": _table, "daemon": _table})
    daemon = tables.get("daemon", {})
    _check("[daemon]", daemon, {"log": _table, "monitor": _table, "pid-file": _text})
    monitor = _fields("[daemon.monitor]", daemon.get("monitor", {}), {"publishing-interval": _publishing})
    if "pid-file" in daemon:
        monitor["pid_file"] = Path(daemon["pid-file"])
    values = _fields("[srs]", tables.get("srs", {}), _SRS)
    log = dict(daemon.get("log", {}))
    kind = log.pop("type", "console")
    fields = _fields("[daemon.log]", log, _LOG)
    if kind not in ("console", "file") or (kind == "file") != ("name" in fields):
        raise SrsConfigError("[daemon.log] has the type 'file' with a name, or 'console' without one")
    return SrsConfig(**values, **monitor, log=LogConfig(**fields))


Reader = Callable[[str, object], Any]
ValueT = TypeVar("ValueT")


def _table(where: str, value: object) -> object:
    if not isinstance(value, dict):
        raise SrsConfigError(f"{where} must be a table")
    return value


def _text(where: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise SrsConfigError(f"{where} must be a text, not {value!r}")
    return value


def _path(where: str, value: object) -> Path:
    return Path(_text(where, value))


def _publishing(where: str, value: object) -> int:
    number = _number(MAX_PUBLISHING_MS)(where, value)
    assert isinstance(number, int)
    if 0 < number < MIN_PUBLISHING_MS:
        raise SrsConfigError(f"{where} must be 0 or at least {MIN_PUBLISHING_MS}, not {number}")
    return number


def _word(words: type[Enum]) -> Reader:
    def read(where: str, value: object) -> Enum:
        try:
            return words(value)
        except ValueError:
            names = ", ".join(str(member.value) for member in words)
            raise SrsConfigError(f"{where} must be one of {names}, not {value!r}") from None

    return read


def _number(high: int) -> Reader:
    def read(where: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= high:
            raise SrsConfigError(f"{where} must be a whole number between 0 and {high}, not {value!r}")
        return value

    return read


_SRS: dict[str, Reader] = {
    "interface": _text,
    "port": _number(MAX_PORT),
    "state-lifetime": _number(MAX_LIFETIME_SECONDS),
    "source-state-lifetime": _number(MAX_LIFETIME_SECONDS),
    "interest-state-lifetime": _number(MAX_LIFETIME_SECONDS),
    "source-leave-backoff": _number(MAX_BACKOFF_MS),
}
_LOG: dict[str, Reader] = {
    "name": _path,
    "frequency": _word(Frequency),
    "size": _number(MAX_COUNT),
    "max-history": _number(MAX_COUNT),
    "total-size-cap": _number(MAX_COUNT),
    "compression": _word(Compression),
}


def _check(where: str, table: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The values of a table, read."""
    for key in table:
        if key not in readers:
            raise SrsConfigError(f"{where} has no {key}: it may have {', '.join(readers)}")
    return {key: readers[key](f"{where} {key}", value) for key, value in table.items()}


def _fields(where: str, table: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, Any]:
    return {key.replace("-", "_"): value for key, value in _check(where, table, readers).items()}
