"""The guide's samples for sources as one program. `spec/samples.md` names each sample and its function here.

The program sends five messages under a saved RegID. It prints all events about them, with its own number of each
message. A receiver must confirm each message before the source releases it.
"""

import argparse
import asyncio
from pathlib import Path

from stablecast.client import Context, NotRegistered, Source
from stablecast.core.machine import serial
from stablecast.core.protocol import events

TOPIC = "UME Example"
SAVED = Path("UME-example-src-RegID")
MESSAGES = 5
LARGE = 3
"""Number of the message that is larger than a datagram."""
RETRY_SECONDS = 1.0
"""Seconds before a message is sent again that too few stores were there for."""

STABLE_FLAGS = {
    events.StableFlag.INTRAGROUP: "IA",  # stable in its group of stores
    events.StableFlag.INTERGROUP: "IR",  # stable among the groups
    events.StableFlag.STABLE: "STABLE",  # stable by all rules
    events.StableFlag.STORE: "STORE",  # reported by one store
}
CONFIRM_FLAGS = {
    events.ConfirmFlag.UNIQUE: "UNIQUEACKS",  # enough different receivers confirmed
    events.ConfirmFlag.USER_REG_ID: "UREGID",  # with the RegID that the receiving application chose
    events.ConfirmFlag.OUT_OF_ORDER: "OOD",  # from a receiver in arrival order
    events.ConfirmFlag.EXPLICIT: "EXACK",  # sent explicitly by the application
}


def static_reg_id(store: str, reg_id: int) -> str:
    """Sample 1: ask a store for a RegID that the application chose."""
    return f"{store}:{reg_id}"


def save_reg_id(event: events.RegistrationSuccess) -> None:
    """Sample 2: save the RegID that the store assigned."""
    info = f"{event.store}:{event.reg_id}"
    print(f'saving RegID info to "{SAVED}" - {info}')
    SAVED.write_text(info, encoding="utf-8")


def saved_reg_id(store: str) -> str:
    """Sample 3: look for a saved RegID; without one the store chooses."""
    if not SAVED.exists():
        return store
    info = SAVED.read_text(encoding="utf-8")
    print(f'read in saved RegID info from "{SAVED}" - {info}')
    return info


async def send(source: Source, payload: bytes, number: int) -> None:
    """Sample 4: send, and wait while too few stores are registered. Sample 9: ask for the numbers of the message."""
    while True:
        try:
            await source.send(payload, tag=number, number_info=True, wait=False)
        except NotRegistered:
            print("Send unsuccessful. Waiting...")
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return


def unique_confirmations(receivers: int) -> dict[str, int | str]:
    """Sample 6: release a message only after this number of different receivers confirmed it."""
    return {
        "ume_retention_unique_confirmations": receivers,
        "ume_confirmed_delivery_notification": 1,
        "ume_message_stability_notification": 1,
    }


def on_reclaimed(event: events.Reclaimed, numbers: tuple[object, ...]) -> None:
    """Sample 5: print that messages were released; those that were released by force were released too early."""
    forced = " FORCED" if event.forced else ""
    for sequence_number, number in zip(range(event.first, event.last + 1), numbers, strict=False):
        text = f"UME message reclaimed (ex) - sequence number {serial.wire(sequence_number):x} (cd {number})."
        print(f"{text} Flags 0x{int(event.forced):x}{forced}")


def on_registration(event: events.Event) -> None:
    """Sample 7: print the events about the registration of a source."""
    match event:
        case events.RegistrationError():
            print(f"Error registering source with UME store: {event.text}")
        case events.RegistrationSuccess():
            flags = f"OLD[SQN {event.number:x}] " if events.RegistrationFlag.OLD in event.flags else ""
            flags += "NOACKS " if events.RegistrationFlag.NO_ACKS in event.flags else ""
            text = f"UME store {event.store_index}: {event.store} registration success. RegID {event.reg_id}."
            print(f"{text} Flags {int(event.flags):x} {flags}".rstrip())
            save_reg_id(event)
        case events.RegistrationComplete():
            quorum = " QUORUM" if events.RegistrationFlag.QUORUM in event.flags else ""
            print(f"UME registration complete. SQN {event.number:x}. Flags {int(event.flags):x}{quorum}")
        case events.StoreUnresponsive():
            print(f"UME store: {event.text}")


def on_message_event(event: events.Event, numbers: tuple[object, ...], store: str) -> None:
    """Sample 8: print the events about stability and confirmation, with the application's numbers."""
    match event:
        case events.Stable():
            flags = " ".join(text for flag, text in STABLE_FLAGS.items() if flag in event.flags)
            text = f"UME store {event.store_index}: {store} message stable. SQN {event.first:x}..{event.last:x}"
            print(f"{text} (msgno {_listed(numbers)}). Flags {int(event.flags):x} {flags}")
        case events.Confirmed():
            flags = " ".join(text for flag, text in CONFIRM_FLAGS.items() if flag in event.flags)
            text = f"UME delivery confirmation. SQN {event.first:x}..{event.last:x}, Receiver RegID"
            print(f"{text} {event.receiver_reg_id} (msgno {_listed(numbers)}). Flags {int(event.flags):x} {flags}")


def on_numbers(event: events.SequenceNumberInfo, number: object) -> None:
    """Sample 10: print the sequence numbers that one message of the application got."""
    if event.first == event.last:
        print(f"SQN {event.last:x} (msgno {number})")
    else:
        print(f"SQN [{event.first:x},{event.last:x}] (msgno {number})")


def _listed(numbers: tuple[object, ...]) -> str:
    return ",".join(map(str, numbers))


async def main(arguments: argparse.Namespace) -> None:
    """Send all messages, and wait until they were released."""
    reclaimed: set[object] = set()
    done = asyncio.Event()
    sources: list[Source] = []

    def on_event(event: events.Event) -> None:
        on_registration(event)
        if not sources:
            return
        details = sources[0].details(event)
        on_message_event(event, details.tags, details.store)
        if isinstance(event, events.SequenceNumberInfo):
            on_numbers(event, details.tags[0])
        elif isinstance(event, events.Reclaimed):
            on_reclaimed(event, details.tags)
            reclaimed.update(details.tags)
            if len(reclaimed) == MESSAGES:
                done.set()

    store = static_reg_id(arguments.store, arguments.reg_id) if arguments.reg_id else saved_reg_id(arguments.store)
    async with Context(resolver=[arguments.resolver]) as context:
        options = unique_confirmations(arguments.receivers)
        source = await context.source(TOPIC, stores=[store], on_event=on_event, options=options)
        sources.append(source)
        for number in range(1, MESSAGES + 1):
            await send(source, bytes(200_000 if number == LARGE else 15), number)
        await done.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default="127.0.0.1:14567", help="ip:port of the store")
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    parser.add_argument("--reg-id", type=int, default=0, help="RegID to ask for; default: the saved one")
    parser.add_argument("--receivers", type=int, default=1, help="receivers that must confirm each message")
    asyncio.run(main(parser.parse_args()))
