"""The stateful resolution service (SRS) as a daemon: sockets, configuration, and a log that rolls."""

from stablecast.srs.config import SrsConfig, SrsConfigError, load
from stablecast.srs.daemon import SrsDaemon

__all__ = ["SrsConfig", "SrsConfigError", "SrsDaemon", "load"]
