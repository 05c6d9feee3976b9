"""Topic resolution over TCP: machines of a context and of the stateful resolution service (SRS)."""
