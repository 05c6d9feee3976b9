"""LBT-RU: sessions over unicast. Receivers connect; each gets every datagram, and what it asks for again."""

from stablecast.transports.reliable.lbtru.receiver import LbtruReceiver
from stablecast.transports.reliable.lbtru.sources import LbtruSources

__all__ = ["LbtruReceiver", "LbtruSources"]
