"""Codecs of the wire formats: headers from and to bytes, no behaviour."""
