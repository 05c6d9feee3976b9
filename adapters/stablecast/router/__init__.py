"""The router as a daemon: its configuration, its portals and its pages."""
