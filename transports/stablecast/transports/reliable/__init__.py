"""The common part of LBT-RM and LBT-RU: numbered datagrams, and the means that make them reliable.

A *session* carries the messages of several topics in numbered datagrams. The source keeps sent datagrams in a window,
and every datagram states the oldest number in it (the trail). The receiver requests missing datagrams (NAK). The source
sends them again, or refuses for now with a reason (NCF). While there is no data, session messages state the limits of
the window. None of this orders messages: datagrams are delivered as they arrive, and `topics` reports the gaps of a
topic.

The machines here are parts of `lbtrm` and `lbtru`, which add addresses, bytes, and for LBT-RU connections.
"""
