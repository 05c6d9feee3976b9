"""Operate on a store: inspect, scrub, export, evict, drain and resume it.

A target is a directory or a running store's monitor (`target`). Reading a directory needs no lock and changes nothing,
so the store may be running (`directory_contents`): `inspection`, `scrub`, `export`. Changes need the directory's lock
(`directory_changes`) or the monitor's read-write permission (`monitor_client`). `top` shows the monitor in a terminal.
"""
