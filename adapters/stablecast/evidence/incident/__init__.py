"""The incidents of a night, from traces and logs of several hosts: gaps in stability and delivery, and their causes.

`actors` reads the traces, `clocks` puts them on one wall clock, `gaps` finds the messages that waited, `causes` finds
what each store did meanwhile, and `report` says it.
"""
