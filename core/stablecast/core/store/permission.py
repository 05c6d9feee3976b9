"""The terms that a store would have granted to a client that it refuses, so that both sides can name the difference."""

import attrs

from stablecast.core.machine.units import milliseconds
from stablecast.core.protocol.messages import Pace, Refused, Register, Role, Wishes
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType
from stablecast.core.store.clients import ClientRecord
from stablecast.core.store.retention_terms import Terms, terms_of


def with_terms(
    answer: Refused,
    request: Register,
    holder: ClientRecord | None,
    repository: Terms | None,
    kept: RepositoryConfig | None,
) -> Refused:
    """Return the refusal with the terms that fit.

    They are those of the holder of the RegID, else the pace of a receiver's repository, else what the store allows to
    the source.
    """
    if holder is not None:
        return attrs.evolve(answer, pace=holder.client.pace, permitted=holder.client.wishes)
    if request.role is Role.RECEIVER:
        pace = Pace.SOURCE if repository is None or not repository.paced else Pace.RECEIVERS
        return attrs.evolve(answer, pace=pace, permitted=Wishes())
    if kept is None:
        return answer
    paced = kept.allow_rpp and kept.kind is not RepositoryType.NO_CACHE
    terms = terms_of(kept, request.pace, request.wishes)
    room = kept.flight_bytes_maximum if terms.capacity is None else min(kept.flight_bytes_maximum, terms.capacity)
    wishes = Wishes(
        size_threshold=kept.size_threshold,
        size_limit=kept.size_limit,
        disk_limit=kept.disk_limit,
        flight_bytes=room,
        write_delay_ms=milliseconds(kept.write_delay_ns),
        ack_on_reception=kept.allow_ack_on_reception,
    )
    return attrs.evolve(answer, pace=Pace.RECEIVERS if paced else Pace.SOURCE, permitted=wishes)
