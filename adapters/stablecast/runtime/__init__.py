"""Sockets and timers between the pure machines and asyncio: drivers, connections, streams, datagrams and logs."""
