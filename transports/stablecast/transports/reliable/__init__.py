"""What LBT-RM and LBT-RU have in common: datagrams with numbers, and what makes them reliable.

A *session* carries the messages of several topics in numbered datagrams. The source keeps what it sent in a window and
says with every datagram how far back that reaches (the trail); the receiver asks for what is missing (NAK), the source
sends it again or says why not yet (NCF). While there is no data, session messages say where the session stands. None of
this orders messages: datagrams go up as they arrive, and `topics` says what a topic lacks.

Machines here are parts of `lbtrm` and `lbtru`, which add addresses, bytes, and for LBT-RU connections.
"""
