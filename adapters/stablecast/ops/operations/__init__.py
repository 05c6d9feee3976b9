"""What an operator does with a store: look at it, check it, take messages out, make room, take it out of service.

A place is a directory or the address of a running store's monitor (`place`). Reading a directory changes nothing and
needs no lock, so it may be done beside a running store (`contents`): `inspecting`, `scrubbing`, `exporting`. `changing`
needs the lock offline, or the monitor's read-write permission (`remote`). `top` is the monitor in a terminal.
"""
