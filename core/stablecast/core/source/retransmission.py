"""Answers of a source to requests for messages that it has sent before.

Stores that catch up and late receivers ask for the retained range, then for parts of it. Without late join receivers
get nothing; stores are served all the same (P-411).
"""

from collections.abc import Collection

from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Effect, Resend, Send
from stablecast.core.protocol.messages import Address, LateJoinInfo, LateJoinRequest, RetransmitRequest, Role
from stablecast.core.source.stability import StabilityWindow


def resend(request: RetransmitRequest, window: StabilityWindow, late_join: bool, out: list[Effect]) -> None:
    """Send the retained part of the requested range."""
    if request.by is Role.RECEIVER and not late_join:
        return
    # Requests carry 32-bit numbers of a peer: whatever they extend to, only retained numbers are sent.
    first = serial.extend(request.first, window.next)
    last = serial.extend(request.last, window.next)
    low, stop = window.retained(first, last + 1)
    if low < stop:
        out.append(Resend(request.reply_to, request.incarnation, low, stop - 1))


def send_range(
    request: LateJoinRequest, window: StabilityWindow, stores: Collection[Address], late_join: bool, out: list[Effect]
) -> None:
    """Answer with the retained range; it is empty for a peer that is not served."""
    low = window.trail if late_join or request.reply_to in stores else window.next
    answer = LateJoinInfo(request.incarnation, request.request, serial.wire(low), serial.wire(window.next - 1))
    out.append(Send(request.reply_to, answer))
