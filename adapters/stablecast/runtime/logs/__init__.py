"""Where daemons write lines: the console, or a file that rolls."""

from stablecast.runtime.logs.plain import ConsoleLog, Log, PlainLog
from stablecast.runtime.logs.rolling import Compression, Frequency, Rolling, RollingFile, utc_now

__all__ = ["Compression", "ConsoleLog", "Frequency", "Log", "PlainLog", "Rolling", "RollingFile", "utc_now"]
