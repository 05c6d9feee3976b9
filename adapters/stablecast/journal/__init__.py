"""The store's disk: an append-only journal with a checksum per record and one sync per batch.

`format` holds the bytes, `segments` the files, `index` which record holds which number, `recovery` the scan at open,
`writer` the thread that writes and syncs, `pending` what it has not synced yet, `lock` the rule of one process per
directory, and `journal` the class that a store uses.
"""

from stablecast.journal.errors import JournalError
from stablecast.journal.journal import MAX_QUEUED_BYTES, SEGMENT_BYTES, Journal

__all__ = ["MAX_QUEUED_BYTES", "SEGMENT_BYTES", "Journal", "JournalError"]
