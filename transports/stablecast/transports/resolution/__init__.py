"""Topic resolution: the protocols by which receivers find sources.

`udp` resolves over relays (lbmrd) or a multicast group, `srs` over resolution services. Each machine is driven alike:

    machine.receive(event, now)      feeds one input of `inputs`; `now` in nanoseconds, never falling
    machine.handle_timeout(now)      at or after `next_timeout()`; spurious and late calls are harmless
    machine.next_timeout()           nanoseconds on the clock of `now`, or None
    machine.take_effects()           returns what the driver must do, in order (`effects`), and empties the outbox

In `udp`, `advertiser` is the source side and `querier` the receiver side; neither knows how its records travel.
`context` joins the two sides of one context and sends through its `carriers`. `relay` is the lbmrd itself. `schedule`
orders the turns of topics, and `record_batches` lets records share datagrams. `records` converts a source to an
advertisement (TIR) and back.
"""
