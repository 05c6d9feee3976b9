"""The incidents of a night, from traces, captures and logs of several hosts: gaps, and their causes.

`actors` reads the traces. `capture_contents` reads captures to the same actors, by `witness`, `captured`, `tcp_lives`
and `datagram_paths`. `clocks` puts all on one wall clock, `gaps` finds the messages that waited, `causes` and
`capture_findings` find why, and `report` says it.
"""
