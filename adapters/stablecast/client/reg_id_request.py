"""The question that a receiver asks the application about its RegID."""

import attrs


@attrs.frozen
class RegIdRequest:
    """The question for the RegID of a receiver at one store (P-249).

    Attributes:
        store_index: The index of the store in the source's list.
        store: Its address `ip:port`.
        source_reg_id: The RegID of the source there.
        source: The source's transport, as `TCP:ip:port` or a source string.
    """

    store_index: int
    store: str
    source_reg_id: int
    source: str
