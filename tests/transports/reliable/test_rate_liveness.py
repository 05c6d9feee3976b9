"""All submitted data leaves under a rate limit, in order, whatever receivers request."""

import random

import attrs
import pytest

from stablecast.core.machine import serial
from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.high_water_marks import message
from stablecast.transports.reliable.inputs import DatagramsReceived, OpenSession, Submit
from stablecast.transports.reliable.lbtrm import LbtrmSources
from stablecast.transports.reliable.lbtru import LbtruSources
from stablecast.transports.reliable.settings import LBTRM_RATES, LBTRU_RATES, RateSettings, SourceSettings
from stablecast.transports.wire import lbtrm, lbtru
from tests.transports.reliable import invariants
from tests.transports.reliable.network import GROUP, NAK_PORT, SESSION_ID, SOURCE, block

MS = MILLISECOND
CLIENT = "10.0.1.1:14360"
SLACK = 8
"""Intervals beyond those that the bytes need at half of the rate: the other half may go to retransmissions."""


@attrs.define
class RateWorld:
    """A context's sessions over one transport, and receivers that request everything again, all the time."""

    kind: str
    rates: RateSettings
    sessions: int
    now: int = 0
    numbers: dict[int, int] = attrs.field(factory=dict)
    left: dict[int, list[int]] = attrs.field(factory=dict)
    spent: dict[int, int] = attrs.field(factory=dict)
    largest: int = 0
    unblocked: int = 0
    blocked_at: int | None = None
    machine: LbtrmSources | LbtruSources = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.machine = LbtrmSources(self.rates) if self.kind == "lbtrm" else LbtruSources(self.rates)
        for number in range(1, self.sessions + 1):
            settings = SourceSettings(batch_bytes=1, ignore_ns=5 * MS, tsni_ns=20 * MS)
            address = GROUP if self.kind == "lbtrm" else SOURCE
            self.machine.receive(OpenSession(number, address, SESSION_ID + number, NAK_PORT, settings), self.now)
            self.numbers[number], self.left[number] = 0, []
            if self.kind == "lbtru":
                request = lbtru.Request(options=(lbtru.SessionId(session_id=SESSION_ID + number),))
                self.machine.receive(DatagramsReceived(number, ((lbtru.encode(request), CLIENT),)), self.now)

    def submit(self, number: int, count: int, size: int) -> None:
        """Send data as a driver does: only while the context is not blocked."""
        assert not self.machine.blocked
        first, self.numbers[number] = self.numbers[number], self.numbers[number] + count
        self.machine.receive(Submit(number, block(number, first, count, size), BatchMark.END), self.now)
        self.perform()

    def say(self, number: int, count: int) -> None:
        """Send control messages."""
        marks = [(topic, 0) for topic in range(100, 100 + count)]
        self.machine.receive(Submit(number, message(marks), BatchMark.END), self.now)
        self.perform()

    def ask(self, number: int, count: int) -> None:
        """Request the newest datagrams again."""
        newest = self.machine.get(number).window.sent
        wanted = tuple(serial.wire(one) for one in range(max(0, newest - count), newest + 1))
        if not wanted:
            return
        session_id = SESSION_ID + number
        if self.kind == "lbtrm":
            octets = lbtrm.encode(lbtrm.Nak(nak_port=NAK_PORT, session_id=session_id, sqns=wanted))
        else:
            octets = lbtru.encode(lbtru.Nak(sqns=wanted, options=(lbtru.SessionId(session_id=session_id),)))
        self.machine.receive(DatagramsReceived(number, ((octets, CLIENT),)), self.now)
        self.perform()

    def advance(self, span: int) -> None:
        """Advance the time, and call timers that are due."""
        end = self.now + span
        while (due := self.machine.next_timeout()) is not None and due <= end:
            self.now = max(self.now, due)
            self.machine.handle_timeout(self.now)
            invariants.check(self.machine)
            self.perform()
        self.now = end

    def perform(self) -> None:
        for effect in self.machine.take_effects():
            match effect:
                case fx.SendDatagrams(number, _, datagrams):
                    for octets in datagrams:
                        self.sent(number, octets)
                case fx.Unblocked():
                    assert self.blocked_at is not None
                    assert not self.machine.blocked
                    self.unblocked += 1
                    self.blocked_at = None
        if self.machine.blocked and self.blocked_at is None:
            self.blocked_at = self.now

    def sent(self, number: int, octets: bytes) -> None:
        module = lbtrm if self.kind == "lbtrm" else lbtru
        packet = module.decode(octets)
        if not isinstance(packet, module.Data):
            return
        again = bool(packet.flags & module.Data.RETRANSMISSION)
        if not again:
            self.left[number].append(packet.sqn)
        if self.rates.repairs_count or not again:
            interval = self.now // self.rates.interval_ns
            self.spent[interval] = self.spent.get(interval, 0) + len(octets)
            self.largest = max(self.largest, len(octets))


@pytest.mark.parametrize("kind", ["lbtrm", "lbtru"])
@pytest.mark.parametrize("seed", range(40))
def test_everything_leaves_in_order_and_the_context_is_unblocked_each_time(kind: str, seed: int) -> None:
    """Several topics and sessions, control messages, retransmissions: nothing is refused, lost or queued forever."""
    chance = random.Random(seed)
    base = LBTRM_RATES if kind == "lbtrm" else LBTRU_RATES
    data_bits = chance.choice((50_000, 100_000, 200_000, 1_000_000, 10_000_000))
    repair_bits = chance.choice((20_000, 100_000, 5_000_000, 20_000_000))
    world = RateWorld(kind, attrs.evolve(base, data_bits=data_bits, repair_bits=repair_bits), chance.randint(1, 3))
    submitted = 0
    for _ in range(150):
        number = chance.randint(1, world.sessions)
        for _ in range(chance.randint(0, 3)):
            if not world.machine.blocked:
                count, size = chance.choice(((1, 500), (3, 200), (30, 300), (8, 7_000)))
                submitted += count * (size + 64) + 2_000
                world.submit(number, count, size)
        if chance.random() < 0.3 and not world.machine.blocked:
            world.say(number, chance.randint(1, 40))
            submitted += 1_000
        world.ask(number, chance.randint(0, 50))
        world.advance(chance.randint(0, 3 * world.rates.interval_ns))
    needed = 2 * submitted * 8 * 1_000_000_000 // data_bits + SLACK * world.rates.interval_ns
    end, unblocked = world.now + needed, world.unblocked
    leads = {number: world.machine.get(number).window.lead for number in world.left}
    while world.machine.blocked and world.unblocked == unblocked and world.now < end:
        for number in world.left:
            world.ask(number, 50)
        world.advance(world.rates.interval_ns)
    assert world.unblocked > unblocked or not world.machine.blocked, "the context is blocked for ever"
    for number, left in world.left.items():
        assert left == list(range(len(left))), "each datagram left once, in order"
        assert len(left) > leads[number], "all that was submitted left"
    full = data_bits * world.rates.interval_ns // (8 * 1_000_000_000)
    headers = 64
    assert all(spent <= max(full, world.largest) + headers * 64 for spent in world.spent.values())


def test_receivers_that_ask_for_ever_do_not_starve_data_where_both_share_a_limit() -> None:
    """The limit of retransmissions may exceed that of data: every other interval belongs to data."""
    rates = attrs.evolve(LBTRM_RATES, data_bits=100_000, repair_bits=5_000_000)
    world = RateWorld("lbtrm", rates, 1)
    for _ in range(10):
        while world.machine.blocked:
            world.advance(MS)
        world.submit(1, 1, 500)
    world.advance(100 * MS)
    while not world.machine.blocked:
        world.submit(1, 1, 500)
    for _ in range(40):
        world.ask(1, 50)
        world.advance(MS)
    assert not world.machine.blocked
