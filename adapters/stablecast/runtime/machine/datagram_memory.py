"""The memory into which a socket reads many datagrams, and the function that does so."""

import socket
from collections.abc import Sequence
from typing import Protocol

Socket = socket.socket
"""The type of a socket."""


class DatagramMemory(Protocol):
    """Memory for the datagrams of one read.

    Attributes:
        octets: Room for all datagrams; number n begins at n * `stride` and has at most `size` bytes.
        names: Room for the sender of each: 16 bytes of a `sockaddr_in`, the port at 2 and the address at 4.
        count: Datagrams that fit.
    """

    octets: bytearray
    names: bytearray
    count: int
    stride: int
    size: int


class DatagramReader(Protocol):
    def __call__(self, sock: Socket, /) -> Sequence[int]:
        """Read the datagrams that wait at a non-blocking socket, and return their sizes in bytes, at least one.

        Raises:
            BlockingIOError: No datagram waits.
            OSError: The network reported an error about an earlier datagram that this socket sent.
        """
