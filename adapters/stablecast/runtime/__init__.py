"""Sockets and timers between the pure machines and asyncio: one driver, one pool of connections, one stream server."""
