"""LBT-RU: sessions over unicast. Receivers connect; each gets every datagram, and the repairs that it requests."""

from stablecast.transports.reliable.lbtru.receiver import LbtruReceiver
from stablecast.transports.reliable.lbtru.sources import LbtruSources

__all__ = ["LbtruReceiver", "LbtruSources"]
