"""A bridge of two network devices that loses, repeats and delays frames.

The headers of `PACKET_VNET_HDR` travel with each frame, so that large frames and checksums that a device would complete
stay as they are.
"""

import heapq
import os
import random
import select
import signal
import socket
import time
from collections.abc import Callable
from itertools import count

SOL_PACKET = 263
PACKET_VNET_HDR = 15
PACKET_OUTGOING = 4
ETH_P_ALL = 3
FRAME_BYTES = 1 << 17
"""Larger than every frame with its header."""
LATE_SECONDS = 0.02
"""Extra delay of frames that later ones may overtake."""
JITTER_SECONDS = 0.005
"""Largest usual delay."""


def _device(name: str) -> socket.socket:
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    device.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    device.bind((name, 0))
    device.setblocking(False)
    return device


def carry(one: str, other: str, share: float, rng: random.Random, seconds: float = 0.0) -> None:
    """Carry frames between two devices for ever. `share` of them are lost, repeated, or late, each.

    With a delay of `seconds` the usual frames keep their order.
    """
    devices = [_device(one), _device(other)]
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    numbers = count()
    while True:
        wait = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select(devices, [], [], wait)
        for device in ready:
            frame, source = device.recvfrom(FRAME_BYTES)
            if source[2] == PACKET_OUTGOING or rng.random() < share:
                continue
            there = devices[device is devices[0]]
            for _ in range(1 + (rng.random() < share)):
                late = LATE_SECONDS if rng.random() < share else seconds or rng.random() * JITTER_SECONDS
                heapq.heappush(waiting, (time.monotonic() + late, next(numbers), there, frame))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, there, frame = heapq.heappop(waiting)
            _send(there, frame)


def _send(device: socket.socket, frame: bytes) -> None:
    try:
        device.send(frame)
    except OSError:
        return  # The device is down or full, so the frame is lost.


def start(act: Callable[[], None]) -> int:
    """Run a function in a child process, and return its process id."""
    pid = os.fork()
    if not pid:
        try:
            act()
        finally:
            os._exit(1)
    return pid


def end(pid: int) -> None:
    """Kill a child process and wait for its end."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
