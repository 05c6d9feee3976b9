"""The relay (lbmrd) as a daemon: its configuration and its socket."""
