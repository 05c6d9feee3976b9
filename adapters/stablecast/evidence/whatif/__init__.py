"""Replay of a recorded source under another configuration: the same core and the same arrivals."""
