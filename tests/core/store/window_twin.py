"""A receiver's window that thinks number by number: what the real one is held against."""

import attrs


@attrs.define
class Twin:
    """Number by number: what came, what is lost, what was known before; `ahead` is settled out of order."""

    proximity: int
    in_order: bool
    next: int | None = None
    held: dict[int, int] = attrs.field(factory=dict)
    ahead: set[int] = attrs.field(factory=set)
    lost: set[int] = attrs.field(factory=set)
    known: set[int] = attrs.field(factory=set)
    delivered: list[tuple[int, int]] = attrs.field(factory=list)
    losses: list[tuple[int, bool]] = attrs.field(factory=list)
    skipped: set[int] = attrs.field(factory=set)
    consumed: set[int] = attrs.field(factory=set)
    claimed: set[int] = attrs.field(factory=set)
    acked: int = -1

    def begin(self, low: int) -> None:
        self.next, self.acked = low, low - 1
        self.held = {n: token for n, token in self.held.items() if n >= low}
        self.known = {n for n in self.known if n >= low}
        self.drain()

    def unsettled(self, n: int) -> bool:
        return n >= (self.next or 0) and not any(n in some for some in (self.held, self.ahead, self.lost, self.known))

    def run(self, first: int, stop: int, token: int) -> None:
        straight = self.next in range(first, stop) and not self.held and not self.ahead and not self.known
        base = self.next if self.next is not None else min(self.held, default=stop)
        near = stop - base <= self.proximity or (not self.in_order and self.next is not None)
        if not straight and not near:
            return
        for n in range(first, stop):
            self.lost.discard(n)
            if self.unsettled(n):
                self.held[n] = token
        self.drain()

    def lose(self, start: int, stop: int) -> None:
        for n in filter(self.unsettled, range(start, stop)):
            if self.in_order:
                self.lost.add(n)
            else:
                self.pass_over(n, False)
        self.drain()

    def burst(self, start: int, stop: int) -> None:
        assert self.next is not None
        if self.in_order:
            for n in range(self.next, stop):
                self.held.pop(n, None)
                self.lost.discard(n)
                self.pass_over(n, True)
                if n in self.known:
                    self.known.remove(n)
                    self.skipped.remove(n)
                    self.consumed.add(n)
            self.ahead.clear()
            self.next = max(self.next, stop)
        else:
            for n in filter(self.unsettled, range(start, stop)):
                self.pass_over(n, True)
        self.drain()

    def pass_over(self, n: int, burst: bool) -> None:
        self.ahead.add(n)
        self.skipped.add(n)
        self.losses.append((n, burst))

    def know(self, start: int, stop: int) -> None:
        first = start if self.next is None else max(start, self.next)
        self.known |= {n for n in range(first, stop) if n not in self.held and n not in self.ahead}
        self.drain()

    def drain(self) -> None:
        if not self.in_order and self.next is not None:
            self.delivered += sorted(self.held.items())
            self.ahead |= set(self.held)
            self.held.clear()
        while self.next is not None:
            if self.next in self.held:
                self.delivered.append((self.next, self.held.pop(self.next)))
            elif self.next in self.ahead:
                self.ahead.remove(self.next)
            elif self.next in self.known:
                self.known.remove(self.next)
                self.consumed.add(self.next)
            elif self.next in self.lost:
                self.lost.remove(self.next)
                self.skipped.add(self.next)
                self.losses.append((self.next, False))
            else:
                return
            self.next += 1

    def claim(self, first: int, number: int) -> None:
        for n in range(self.acked + 1, number + 1):
            delivered = n < (self.next or 0) or n in self.ahead
            if delivered and (self.in_order or n >= first or n in self.consumed):
                self.claimed.add(n)

    def acknowledge(self, explicit: bool) -> int | None:
        done = self.claimed if explicit else self.consumed
        end, n = None, self.acked + 1
        while n in done or n in self.skipped:
            end = n if n in done else end
            n += 1
        self.acked = self.acked if end is None else end
        return end

    def leap(self, explicit: bool) -> int | None:
        end = max((n for n in (self.claimed if explicit else self.consumed) if n > self.acked), default=None)
        self.acked = self.acked if end is None else end
        return end
