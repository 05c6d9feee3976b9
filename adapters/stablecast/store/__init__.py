"""The reference store daemon: the pure store endpoint driven by sockets and the journal."""
