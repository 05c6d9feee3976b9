"""Where daemons write lines: the console, or a file that rolls."""

from stablecast.logs.plain import ConsoleLog, Log, PlainLog
from stablecast.logs.rolling import Compression, Frequency, Rolling, RollingFile, utc_now

__all__ = ["Compression", "ConsoleLog", "Frequency", "Log", "PlainLog", "Rolling", "RollingFile", "utc_now"]
