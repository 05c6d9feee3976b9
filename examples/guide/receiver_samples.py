"""The guide's samples for receivers as one program. `spec/samples.md` names each sample and its function here.

The receiver acknowledges explicitly, after each second message. With `--offset` it begins elsewhere than it would.
"""

import argparse
import asyncio

from stablecast.client import Context, Message, Receiver
from stablecast.core.protocol import events
from stablecast.core.protocol.effects import AskLow

TOPIC = "UME Example"
REG_ID = 1100


def on_event(event: events.Event, source: str) -> None:
    """Sample 11: print the events about the registration of a receiver."""
    where = f"[{TOPIC}][{source}]"
    match event:
        case events.RegistrationError():
            print(f"{where} UME registration error: {event.text}")
        case events.RegistrationSuccess():
            flags = f"OLD[SQN {event.number:x}] " if events.RegistrationFlag.OLD in event.flags else ""
            flags += "NOCACHE " if events.RegistrationFlag.NO_CACHE in event.flags else ""
            text = f"{where} store {event.store_index}: {event.store} UME registration successful."
            ids = f"SrcRegID {event.source_reg_id} RcvRegID {event.reg_id}"
            print(f"{text} {ids}. Flags {int(event.flags):x} {flags}".rstrip())
        case events.RegistrationComplete():
            flags = " QUORUM" if events.RegistrationFlag.QUORUM in event.flags else ""
            flags += " RXREQMAX" if events.RegistrationFlag.REQUEST_MAXIMUM in event.flags else ""
            print(f"{where} UME registration complete. SQN {event.number:x}. Flags {int(event.flags):x}{flags}")
        case events.RegistrationChange():
            print(f"{where} UME registration change: {event.text}")


def begin_at(question: AskLow, offset: int) -> int:
    """Sample 12: begin at an offset from the first message that was not consumed."""
    low = question.low + offset
    if low < 0:
        print("New low sequence number would be negative. Leaving low SQN unchanged.")
        low = question.low
    text = f"SQNs Low {question.low} (will set to {low}), Low rxreqmax {question.low_by_maximum}, High {question.high}"
    print(text)
    return low


def acknowledge(message: Message) -> None:
    """Sample 13: extract what an acknowledgement needs, and acknowledge later, without the message."""
    handle, number = message.ack_handle(), message.sequence_number
    del message
    handle.ack(number)
    print(f"acknowledged up to {number}")


async def main(arguments: argparse.Namespace) -> None:
    """Print messages, and acknowledge each second one with all before it."""
    receivers: list[Receiver] = []
    print(f"Will use seqnum info with low offset {arguments.offset}.")
    async with Context(resolver=[arguments.resolver]) as context:
        receiver = context.receiver(
            TOPIC,
            reg_id=lambda _: REG_ID,
            on_event=lambda event: on_event(event, receivers[0].details(event).source),
            start_at=lambda question: begin_at(question, arguments.offset),
            options={"ume_explicit_ack_only": 1, "ume_use_ack_batching": 0},
        )
        receivers.append(receiver)
        received = 0
        async for message in receiver:
            received += 1
            print(f"received {len(message.payload)} bytes, sequence number {message.sequence_number}")
            if received % 2 == 0:
                acknowledge(message)
            if received == arguments.count:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    parser.add_argument("--offset", type=int, default=0, help="messages by which the beginning is moved")
    parser.add_argument("--count", type=int, default=5, help="messages after which the program ends")
    asyncio.run(main(parser.parse_args()))
