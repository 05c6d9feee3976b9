"""A relay between the ends of a UDP session that drops some datagrams."""

from stablecast.core.machine.seeded import Seeded
from stablecast.runtime import datagrams, multicast
from stablecast.runtime.address import join
from stablecast.runtime.datagrams import DatagramSocket, Sent

LOOPBACK = "127.0.0.1"


class Lossy:
    """Drops by a seed, in parts per thousand."""

    def __init__(self, permille: int) -> None:
        self.permille = permille
        self.dropped = 0
        self._seeded = Seeded(1)

    def keeps(self) -> bool:
        lost = self._seeded.below(1000) < self.permille
        self.dropped += lost
        return not lost


class UnicastRelay(Lossy):
    """Stands in for an LBT-RU source; each client has a socket of its own towards the source."""

    def __init__(self, source: str, permille: int) -> None:
        super().__init__(permille)
        self._source = source
        self._clients: dict[str, DatagramSocket] = {}
        self._front = DatagramSocket(datagrams.bind(LOOPBACK, 0), self._from_clients)
        self.address = join(LOOPBACK, self._front.port)

    def _from_clients(self, found: list[Sent]) -> None:
        for client, those in found:
            if client not in self._clients:
                self._clients[client] = self._towards(client)
            self._carry(self._clients[client], self._source, [(client, those)])

    def _towards(self, client: str) -> DatagramSocket:
        return DatagramSocket(datagrams.bind(LOOPBACK, 0), lambda found: self._carry(self._front, client, found))

    def _carry(self, sock: DatagramSocket, to: str, found: list[Sent]) -> None:
        sock.send(to, [bytes(octets) for _, those in found for octets in those if self.keeps()])

    def close(self) -> None:
        for sock in (self._front, *self._clients.values()):
            sock.close()


class MulticastRelay(Lossy):
    """Carries from one group to another; NAKs go straight to the source."""

    def __init__(self, heard: tuple[str, int], said: tuple[str, int], permille: int) -> None:
        super().__init__(permille)
        self.group = join(*said)
        self._out = DatagramSocket(multicast.sending(LOOPBACK), self._carry)
        self._in = DatagramSocket(multicast.hearing(*heard, LOOPBACK), self._carry)

    def _carry(self, found: list[Sent]) -> None:
        self._out.send(self.group, [bytes(octets) for _, those in found for octets in those if self.keeps()])

    def close(self) -> None:
        self._in.close()
        self._out.close()
