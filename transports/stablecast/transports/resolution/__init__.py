"""Topic resolution: how receivers find sources.

This form resolves over the unicast relay (lbmrd). Each machine is driven alike:

    machine.receive(event, now)      one input of `inputs`; `now` in nanoseconds, never falling
    machine.handle_timeout(now)      at or after `next_timeout()`; spurious and late calls are harmless
    machine.next_timeout()           nanoseconds on the clock of `now`, or None
    machine.take_effects()           what to do, in order (`effects`); empties the outbox

`advertiser` is the source side, `querier` the receiver side, both blind to how their records travel; `context` puts
the two of one context together and sends through the relays of `relays`; `relay` is the lbmrd itself. `schedule` tells
when a topic's turn comes, `records` how a source is written as an advertisement (TIR), `packing` how records share
datagrams.
"""
