"""Topic resolution over UDP: machines of a context and of the relay (lbmrd)."""
