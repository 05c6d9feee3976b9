"""The stateful resolution service (SRS) as a daemon: its configuration and its sockets."""

from stablecast.resolver.srs.config import SrsConfig, load
from stablecast.resolver.srs.daemon import SrsDaemon

__all__ = ["SrsConfig", "SrsDaemon", "load"]
