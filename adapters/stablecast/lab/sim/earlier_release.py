"""Messages as stores of release 0.1.0 read and write them: what later releases added is not there.

Since 0.1.0 grants tell the memory and the generation of a store, and what it knows of others. Registrations and SRIs
carry generations, and an SRI tells whether the life found only stores without memory. All of these are extended
options, which 0.1.0 ignores and never sends. Its stores ask other stores for nothing. They answer one that asks them
like any receiver.
"""

import attrs

from stablecast.core.protocol.messages import (
    ANY_STORE,
    Message,
    Register,
    Registered,
    RetransmitRequest,
    SourceInfo,
    StoreMemory,
)


def as_earlier(message: Message) -> Message:
    """Return a message without what release 0.1.0 does not know."""
    match message:
        case Register():
            return attrs.evolve(message, known_generation=0)
        case Registered():
            return attrs.evolve(message, memory=StoreMemory.KEPT, known=None, store_generation=0, peers=())
        case SourceInfo():
            stores = tuple(attrs.evolve(entry, generation=0) for entry in message.stores)
            return attrs.evolve(message, stores=stores, founding=False)
        case RetransmitRequest():
            return attrs.evolve(message, store_index=ANY_STORE)
        case _:
            return message
