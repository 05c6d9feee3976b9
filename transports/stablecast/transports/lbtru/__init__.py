"""LBT-RU: sessions over unicast. Receivers connect; each gets every datagram, and what it asks for again."""

from stablecast.transports.lbtru.receiver import LbtruReceiver
from stablecast.transports.lbtru.sources import LbtruSources

__all__ = ["LbtruReceiver", "LbtruSources"]
