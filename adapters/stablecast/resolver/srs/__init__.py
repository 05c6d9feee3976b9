"""The stateful resolution service (SRS) as a daemon: sockets, configuration, and a log that rolls."""

from stablecast.resolver.srs.config import SrsConfig, SrsConfigError, load
from stablecast.resolver.srs.daemon import SrsDaemon

__all__ = ["SrsConfig", "SrsConfigError", "SrsDaemon", "load"]
