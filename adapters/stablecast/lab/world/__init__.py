"""A world of hosts in virtual time, in one process, for programs that do not know it.

Each host has an address, clocks, a file system, and programs. Each thread of a program is a greenlet, and each event
loop is asyncio's own on simulated sockets. So the shipped programs and the code of users run unmodified, and a seed
repeats a run event by event. Faults strike hosts, paths and disks.
"""
