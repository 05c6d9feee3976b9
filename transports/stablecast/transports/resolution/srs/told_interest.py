"""The interest of a domain, as services tell it to a router: a set for each service, and the union of all.

Like sources, interest stays while a service is away: its contexts still want what they wanted. It ends when the last
service that named it says so, or does not name it in a full exchange.
"""

import attrs

from stablecast.transports.wire.lbmr import Query


@attrs.define
class ToldInterest:
    """Each wanted topic and pattern, with the services that told it and the connection on which they did."""

    holders: dict[Query, dict[int, int]] = attrs.field(factory=dict)

    def put(self, query: Query, holder: int, connection: int) -> bool:
        """Note that a service told interest, and return whether it is new."""
        new = query not in self.holders
        self.holders.setdefault(query, {})[holder] = connection
        return new

    def release(self, query: Query, holder: int) -> bool:
        """Note that a service told the end of interest, and return whether nobody wants the symbol any more."""
        found = self.holders.get(query)
        if found is None or found.pop(holder, None) is None or found:
            return False
        del self.holders[query]
        return True

    def sweep(self, holder: int, connection: int) -> list[Query]:
        """Release what a service did not name on this connection, and return what nobody wants any more."""
        older = [query for query, those in self.holders.items() if those.get(holder, connection) != connection]
        return [query for query in older if self.release(query, holder)]
