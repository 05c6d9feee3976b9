"""Findings about sessions of LBT-RM and LBT-RU."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.evidence.capture.doctor.findings import (
    HISTOGRAM_MS,
    MAX_FRAMES,
    CaptureAdvice,
    histogram,
    milliseconds,
    percent,
    quantile,
)
from stablecast.evidence.capture.doctor.session_history import ANSWER_NS, AskedLoss, LateDatagram, SessionHistory
from stablecast.evidence.capture.doctor.thresholds import Thresholds
from stablecast.evidence.capture.ip import Endpoint, endpoint_text
from stablecast.text import plural
from stablecast.transports.wire.reliable_packets import Reason

BURST: Final = 8
"""Losses are bursts if this many datagrams in a row are lost on average."""

RANDOM_LOW: Final = 0.5
"""Delays of NAKs are random, from half of their option on."""

MARGIN: Final = 0.8
"""An advised interval is this part of the measured bound."""

SLOWEST: Final = 0.99
"""The share of losses whose recovery time is compared with the threshold."""


@attrs.frozen
class SessionFindings:
    """The findings of one session.

    Attributes:
        history: The session.
        thresholds: Values from which on something is a finding.
        end_ns: Time of the last packet of the capture.
        alive_ns: Time of the last sign that the source's context lives, beside its datagrams.
        unreachable: Number of ICMP messages by the receiver that got them for a NAK to this session.
    """

    history: SessionHistory
    thresholds: Thresholds
    end_ns: int
    unreachable: Mapping[Endpoint, int]
    alive_ns: int = 0

    def all(self) -> Iterator[CaptureAdvice]:
        losses = self._by_receiver()
        for receiver, lost in losses.items():
            yield from self._of_receiver(receiver, lost)
        yield from self._late()
        yield from self._early_exit(losses)
        yield from self._of_source()
        yield from self._missing()

    def _by_receiver(self) -> dict[Endpoint, dict[int, AskedLoss]]:
        found: dict[Endpoint, dict[int, AskedLoss]] = {}
        for (receiver, number), loss in self.history.losses.items():
            found.setdefault(receiver, {})[number] = loss
        return found

    def _option(self, name: str) -> str:
        return f"{self.history.prefix}_{name}"

    def _reported(self, code: str, whose: str, value: float) -> "partial[CaptureAdvice] | None":
        """Return what makes the advice if the value is a finding."""
        threshold = getattr(self.thresholds, code.replace("-", "_"))
        if value < threshold or not value:
            return None
        return partial(CaptureAdvice, code, whose, value=value, threshold=threshold)

    def _of_receiver(self, receiver: Endpoint, lost: Mapping[int, AskedLoss]) -> Iterator[CaptureAdvice]:
        whose = f"{endpoint_text(receiver)} of {self.history.name}"
        yield from self._losses(whose, lost)
        yield from self._slow(whose, lost)
        yield from self._refused(whose, lost)
        yield from self._tails(whose, lost)
        yield from self._unrepaired(whose, lost)

    def _losses(self, whose: str, lost: Mapping[int, AskedLoss]) -> Iterator[CaptureAdvice]:
        if not self.history.sent:
            return  # Nobody knows how many were sent.
        sent = max(self.history.span, len(lost))
        share = len(lost) / sent
        reported = self._reported("loss", whose, share)
        if reported is None:
            return
        runs = _runs(sorted(lost))
        again = sum(bool(loss.repeats_ns) for loss in lost.values())
        here = sum(loss.passed for loss in lost.values())
        text = f"lost {len(lost):,} of {sent:,} datagrams ({percent(share)}) in {plural(len(runs), 'gap')}"
        text += f", the longest {max(runs)}; {plural(again, 'repair', 'was', 'were')} lost, too"
        if here < len(lost):
            text += f"; {plural(len(lost) - here, 'datagram', 'is', 'are')} not in the capture either"
        times = histogram(_recovery_times(lost))
        if any(times.values()):
            shown = ", ".join(f"{count:,} {_column(bound)}" for bound, count in times.items() if count)
            text += f". From sending to repair: {shown}"
        yield reported(
            text=text,
            remedy=self._loss_remedy(len(lost) / len(runs), here == len(lost)),
            frames=_frames(lost.values()),
            figures={
                "lost": len(lost),
                "sent": sent,
                "gaps": len(runs),
                "longest_gap": max(runs),
                "again": again,
                "histogram": times,
            },
        )

    def _loss_remedy(self, mean: float, behind: bool) -> str:
        where = "between the place of the capture and the receiver" if behind else "before the place of the capture"
        if mean >= BURST:
            return (
                f"Bursts are lost {where}. Raise {self._option('receiver_socket_buffer')} and the system's limit, "
                f"let the receiver's thread do less, or lower {self._option('data_rate_limit')} at the source."
            )
        return (
            f"Single datagrams are lost {where}. Compare the drop counters of the network cards, switches and "
            "sockets on that way."
        )

    def _late(self) -> Iterator[CaptureAdvice]:
        """Report receivers that asked for datagrams which were only overtaken."""
        overtaken: dict[Endpoint, list[LateDatagram]] = {}
        for (receiver, _), one in self.history.late.items():
            overtaken.setdefault(receiver, []).append(one)
        for receiver, some in overtaken.items():
            whose = f"{endpoint_text(receiver)} of {self.history.name}"
            reported = self._reported("late", whose, len(some) / max(self.history.span, len(some)))
            if reported is None:
                continue
            longest = milliseconds(max(one.wait_ns for one in some))
            yield reported(
                text=f"{plural(len(some), 'datagram')} came after the receiver had asked for "
                f"{'it' if len(some) == 1 else 'them'}, up to {longest:,} ms later: overtaken, and not lost",
                remedy=f"Raise {self._option('nak_initial_backoff_interval')} above {longest:,} ms, or find out what "
                "changes the order: several paths, or several queues of a network card.",
                frames=_frames(some),
                figures={"late": len(some), "longest": longest},
            )

    def _slow(self, whose: str, lost: Mapping[int, AskedLoss]) -> Iterator[CaptureAdvice]:
        times = _recovery_times(lost)
        if not times:
            return
        slowest = quantile(times, SLOWEST)
        reported = self._reported("slow-recovery", whose, milliseconds(slowest))
        if reported is None:
            return
        middle = milliseconds(quantile(times, 0.5))
        late = [loss for loss in lost.values() if loss.repaired_ns and loss.repaired_ns - loss.sent_ns >= slowest]
        yield reported(
            text=f"of {plural(len(times), 'repaired datagram')}, half took {middle:,} ms from sending "
            f"to repair, 99 % took {milliseconds(slowest):,} ms, the slowest {milliseconds(times[-1]):,} ms",
            remedy="The other findings of this receiver say where the time goes: the first NAK, a refused NAK, or a "
            f"lost repair. The first NAK comes {self._option('nak_initial_backoff_interval')} after the gap shows.",
            frames=_frames(late),
            figures={"median": middle, "p99": milliseconds(slowest), "histogram": histogram(times)},
        )

    def _refused(self, whose: str, lost: Mapping[int, AskedLoss]) -> Iterator[CaptureAdvice]:
        refused = [loss for loss in lost.values() if loss.refused]
        reported = self._reported("refused", whose, len(refused))
        if reported is None:
            return
        repeats = sorted(repeat for loss in lost.values() for repeat in loss.repeats_ns)
        low, high = milliseconds(repeats[0]), milliseconds(repeats[-1])
        bounds = f"longer than {milliseconds(self.history.refused_ns):,} ms"
        ignore_ms = self.history.refused_ns / MILLISECOND
        if self.history.served_ns is not None:
            ignore_ms = max(ignore_ms, self.history.served_ns / MILLISECOND)
            bounds += f" and at most {milliseconds(self.history.served_ns):,} ms"
        soon, late = max(1, int(MARGIN * low)), int(ignore_ms / RANDOM_LOW / MARGIN)
        yield reported(
            text=f"{plural(len(refused), 'repair', 'was', 'were')} lost, and the next NAK was refused. It came "
            f"{low:,} to {high:,} ms after the repair, inside the ignore interval of the source, which is {bounds}",
            remedy=f"Set the source's {self._option('ignore_interval')} to {soon} ms, below the shortest time to the "
            f"next NAK. Or set the receiver's {self._option('nak_backoff_interval')} to {late} ms, because a NAK is "
            f"repeated after half of it at the earliest. After a refusal the receiver waits "
            f"{self._option('nak_suppress_interval')}.",
            frames=_frames(refused),
            figures={"shortest_repeat": low, "longest_repeat": high, "ignore_interval": soon, "nak_backoff": late},
        )

    def _tails(self, whose: str, lost: Mapping[int, AskedLoss]) -> Iterator[CaptureAdvice]:
        tails = [loss for loss in lost.values() if loss.tail]
        reported = self._reported("tail-loss", whose, len(tails))
        if reported is None:
            return
        shown = sorted(loss.asked_ns - loss.sent_ns for loss in tails)
        healed = sum(loss.repaired_ns is not None for loss in tails)
        yield reported(
            text=f"{plural(len(tails), 'datagram', 'was', 'were')} lost before a pause of the source. Only a session "
            f"message showed the loss, and the first NAK came {milliseconds(shown[0]):,} to "
            f"{milliseconds(shown[-1]):,} ms after the datagram; {healed} of them were repaired",
            remedy=f"Lower the source's {self._option('sm_minimum_interval')}, the time to the first session message "
            "after data, if the end of a burst must not be late.",
            frames=_frames(tails),
            figures={"repaired": healed, "longest": milliseconds(shown[-1])},
        )

    def _unrepaired(self, whose: str, lost: Mapping[int, AskedLoss]) -> Iterator[CaptureAdvice]:
        gone = [
            loss
            for loss in lost.values()
            if loss.repaired_ns is None and min(self.history.source_ns, self.end_ns) - loss.last_ns > ANSWER_NS
        ]
        reported = self._reported("unrepaired", whose, len(gone))
        if reported is None:
            return
        asked = max(loss.last_ns - loss.asked_ns for loss in gone)
        dropped = self.history.confirmed[Reason.NO_RETRY]
        text = f"{plural(len(gone), 'datagram', 'was', 'were')} never repaired, and no longer asked for; the receiver "
        text += f"asked for up to {milliseconds(asked):,} ms"
        if dropped:
            text += f". The source had let go of {plural(dropped, 'datagram')} (NCF)"
        yield reported(
            text=text,
            remedy=f"Raise the source's {self._option('transmission_window_size')} if it had let go of them, else the "
            f"receiver's {self._option('nak_generation_interval')}. With stores, receivers recover such messages.",
            frames=_frames(gone),
            figures={"let_go": dropped, "asked": milliseconds(asked)},
        )

    def _early_exit(self, losses: Mapping[Endpoint, Mapping[int, AskedLoss]]) -> Iterator[CaptureAdvice]:
        """Report receivers that were still asking when the source ended for good.

        A source that the capture does not show has not ended: new numbers that receivers ask for prove that it goes
        on, and so do later advertisements.
        """
        ended_ns = self.history.source_ns
        if not ended_ns or self.history.unheard or self.end_ns - ended_ns <= ANSWER_NS:
            return
        if self.alive_ns - ended_ns > ANSWER_NS:
            return
        for receiver, lost in losses.items():
            left = [loss for loss in lost.values() if loss.repaired_ns is None and loss.last_ns > ended_ns]
            reported = self._reported("early-exit", f"{endpoint_text(receiver)} of {self.history.name}", len(left))
            if reported is None:
                continue
            asked = max(loss.last_ns for loss in left) - ended_ns
            answers = self.unreachable.get(receiver, 0)
            text = f"the source ended while {plural(len(left), 'datagram', 'was', 'were')} asked for; the receiver "
            text += f"went on to ask for {milliseconds(asked):,} ms"
            if answers:
                text += f", and its host answered that nothing listens there ({plural(answers, 'ICMP message')})"
            yield reported(
                text=text,
                remedy=f"Keep a source open after its last message, longer than the slowest recovery "
                f"({self._slowest_recovery(lost):,} ms here), or for {self._option('nak_generation_interval')}. With "
                "stores, receivers recover the messages of a source that has ended.",
                frames=_frames(left),
                figures={"asked": milliseconds(asked), "icmp": answers},
            )

    def _slowest_recovery(self, lost: Mapping[int, AskedLoss]) -> float:
        return milliseconds(max(_recovery_times(lost), default=0))

    def _of_source(self) -> Iterator[CaptureAdvice]:
        history = self.history
        asked, frame = history.rate
        reported = self._reported("storm", history.name, asked)
        if reported is not None:
            yield reported(
                text=f"receivers asked for {asked:,} datagrams in one second",
                remedy=f"Raise {self._option('nak_backoff_interval')} at the receivers, so that they ask less often, "
                f"and mend the losses first.",
                frames=(frame,),
            )
        reported = self._reported("duplicates", history.name, history.unasked / max(1, history.repairs))
        if reported is not None:
            yield reported(
                text=f"{history.unasked:,} of {plural(history.repairs, 'repair')} followed no NAK in the capture",
                remedy="The NAKs are lost on their way to the place of the capture, or the network doubles packets. "
                f"If neither is so, raise the source's {self._option('ignore_interval')}.",
                frames=_first(history.unasked_frames),
            )
        limited = history.confirmed[Reason.DELAYED] + history.confirmed[Reason.SHED]
        reported = self._reported("limited", history.name, limited)
        if reported is not None:
            yield reported(
                text=f"{plural(limited, 'datagram', 'was', 'were')} not repaired at once, because the source had "
                "reached its limit of repairs",
                remedy=f"Raise {self._option('retransmit_rate_limit')}, and mend the losses first.",
                frames=_first(history.limited_frames),
                figures={"shed": history.confirmed[Reason.SHED]},
            )
        yield from self._rate_limit()
        reported = self._reported("silence", history.name, milliseconds(history.pause.length_ns))
        if reported is not None:
            yield reported(
                text=f"the source sent nothing for {milliseconds(history.pause.length_ns):,} ms, not even a session "
                "message",
                remedy=f"Receivers give a silent session up after {self._option('activity_timeout')}. Keep "
                f"{self._option('sm_maximum_interval')} well below it, and let the source's thread run.",
                frames=(history.pause.frame,),
            )

        yield from self._beats()

    def _rate_limit(self) -> Iterator[CaptureAdvice]:
        """Report a source that sends as much as its rate limit allows, interval by interval."""
        run = self.history.bursts.longest
        reported = self._reported("rate-limit", self.history.name, run.bursts)
        if reported is not None:
            period, bits = milliseconds(round(run.period_ns)), run.octets * 8 * SECOND / run.period_ns
            yield reported(
                text=f"the source sent {run.bursts:,} equal bursts in a row, {run.octets:,} bytes every {period:,} ms "
                f"({bits / 1e6:,.1f} Mbit/s), as a source at its data rate limit does",
                remedy=f"Raise {self._option('data_rate_limit')}, if the network and the receivers bear it: messages "
                "wait at the source meanwhile. An application that sends equal batches at equal times looks the same.",
                frames=(run.frame,),
                figures={"octets": run.octets, "period": period, "bits": round(bits)},
            )

    def _beats(self) -> Iterator[CaptureAdvice]:
        history = self.history
        total = history.beats + history.skipped
        reported = self._reported("session-messages", history.name, history.skipped / max(1, total))
        if reported is not None:
            yield reported(
                text=f"{history.skipped:,} of {plural(total, 'session message')} are not in the capture",
                remedy="Session messages show losses at the end of a burst. If they are lost on their way, such losses "
                f"show later, and receivers may give the session up after {self._option('activity_timeout')}. If the "
                "capture itself lost them, capture with a larger buffer.",
                frames=_first(history.skipped_frames),
                figures={"missing": history.skipped, "captured": history.beats},
            )

    def _missing(self) -> Iterator[CaptureAdvice]:
        history = self.history
        asked = {number for _, number in history.losses}
        missing = sum(stop - start for start, stop in history.unseen)
        missing -= sum(number in history.unseen for number in asked)
        if history.unheard or not history.sent:
            missing += sum(history.newest is None or number > history.newest for number in asked)
            yield from self._unheard(missing)
            return
        sent = history.sent + missing
        reported = self._reported("missing", history.name, missing / max(1, sent))
        if reported is not None:
            yield reported(
                text=f"{missing:,} of {sent:,} datagrams are not in the capture, and no receiver asks for them",
                remedy="The capture itself lost them: capture with a larger buffer, or on another host. Figures of "
                "this session are then too low.",
                figures={"missing": missing},
            )

    def _unheard(self, missing: int) -> Iterator[CaptureAdvice]:
        """Report a source whose datagrams, or whose last ones, are not in the capture."""
        history = self.history
        reported = self._reported("missing", history.name, missing / max(1, history.sent + missing))
        if reported is None or history.called is None:
            return
        which = "its datagrams end" if history.sent else "no new datagram of the source is in the capture"
        yield reported(
            text=f"{which}, while receivers ask for numbers up to {history.called:,}. So the capture lacks datagrams "
            "of the source, and shows neither its losses nor its end",
            remedy="Capture where the source's datagrams pass. A mirror port or a filter may leave out multicast, and "
            "show NAKs only.",
            frames=(history.called_frame,),
            figures={"missing": missing},
        )


def _recovery_times(lost: Mapping[int, AskedLoss]) -> list[int]:
    """Return the times from sending to repair, in order, ns."""
    return sorted(loss.repaired_ns - loss.sent_ns for loss in lost.values() if loss.repaired_ns is not None)


def _column(bound: str) -> str:
    return f"below {bound[1:]} ms" if bound.startswith("<") else f"above {HISTOGRAM_MS[-1]} ms"


def _runs(numbers: Sequence[int]) -> list[int]:
    lengths: list[int] = []
    for index, number in enumerate(numbers):
        if index and number == numbers[index - 1] + 1:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


def _frames(losses: Any) -> tuple[int, ...]:
    return _first(sorted({loss.frame for loss in losses}))


def _first(frames: Sequence[int]) -> tuple[int, ...]:
    return tuple(frames[:MAX_FRAMES])
