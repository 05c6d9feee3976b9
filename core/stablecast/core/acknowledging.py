"""Who is told what the application of a receiver has consumed: every registered store, and the source if it asks.

Stores get a receiver's acknowledgement under its RegID there (P-303); the source gets it under one RegID for the whole
session, so that it counts every receiver once, whatever stores come and go (P-304, P-329).
"""

import attrs

from stablecast.core import serial
from stablecast.core.effects import Effect, Send
from stablecast.core.messages import ConsumptionAck, SourceInfo
from stablecast.core.registration import Registration


@attrs.define
class Acknowledger:
    """Sends consumption acknowledgements; `confirms_as` is the RegID that the source knows, 0 until it is told one."""

    confirms_as: int = 0

    def tell(self, counting: list[Registration], info: SourceInfo, number: int, out: list[Effect]) -> None:
        """Everything up to `number` is consumed."""
        for registration in counting:
            self.tell_store(registration, number, out)
        if info.confirmations and counting:
            self.confirms_as = self.confirms_as or counting[0].request.reg_id
            ack = ConsumptionAck(info.incarnation, 0, self.confirms_as, serial.wire(number))
            out.append(Send(info.request, ack))

    def tell_store(self, registration: Registration, number: int, out: list[Effect]) -> None:
        """The same for one store."""
        request = registration.request
        ack = ConsumptionAck(request.incarnation, request.source_reg_id, request.reg_id, serial.wire(number))
        out.append(Send(registration.address, ack))
