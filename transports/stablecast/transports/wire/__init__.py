"""Codecs of the wire formats: they convert headers and packets to bytes and back, and have no behaviour."""
