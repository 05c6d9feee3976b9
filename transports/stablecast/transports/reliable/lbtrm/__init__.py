"""LBT-RM: sessions over multicast. Data goes to a group, NAKs to a port of the source; all hear what is repaired."""

from stablecast.transports.reliable.lbtrm.receiver import LbtrmReceiver, by_name, name_of
from stablecast.transports.reliable.lbtrm.sources import LbtrmSources

__all__ = ["LbtrmReceiver", "LbtrmSources", "by_name", "name_of"]
