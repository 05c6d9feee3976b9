"""The core of stablecast: pure state machines, no I/O.

Endpoints are `source.SourceEndpoint`, `receiver.ReceiverSession` and `store.StoreEndpoint`. Each is driven the same
way:

    machine.receive(event, now)      one input of `stablecast.core.inputs`; `now` in ns, never falling
    machine.handle_timeout(now)      at or after `next_timeout()`; spurious and late calls are harmless
    machine.next_timeout()           ns on the clock of `now`, or None
    machine.take_effects()           what to do, in order (`stablecast.core.effects`); empties the outbox

After every `receive` or `handle_timeout` take the effects, perform them in order, and re-arm one timer if
`next_timeout()` moved. What waits for the disk waits for a `Persisted` input, never for its place in the list. A
peer's bad message never raises; it comes back as an `Oddity` event. `MisuseError` means that the driver broke the
contract.

The machine counts on every effect that it returned. If one cannot be performed, perform the others; then feed what
happened instead (a message that was not sent is a `Reset` of that peer), or end the endpoint and report why.
"""
