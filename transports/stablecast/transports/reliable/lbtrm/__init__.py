"""LBT-RM: sessions over multicast. Data goes to a group, NAKs go to a port of the source, repairs reach everybody."""

from stablecast.transports.reliable.lbtrm.receiver import LbtrmReceiver, by_name, name_of
from stablecast.transports.reliable.lbtrm.sources import LbtrmSources

__all__ = ["LbtrmReceiver", "LbtrmSources", "by_name", "name_of"]
