"""The store's disk: an append-only journal with a checksum per record and one sync per batch.

`format` holds the bytes, `segments` the files, `disk` how they are written, `index` which record holds which number,
`recovery` the scan at open, `writer` the thread that writes and syncs, `pending` what it has not synced yet, `fetcher`
the thread that reads back and deletes, `lock` the rule of one process per directory, `reading` and `journal` the class
that a store uses.
"""

from stablecast.store.journal.disk import DISK, SEGMENT_BYTES, Disk
from stablecast.store.journal.errors import JournalError
from stablecast.store.journal.journal import MAX_QUEUED_BYTES, Journal

__all__ = ["DISK", "MAX_QUEUED_BYTES", "SEGMENT_BYTES", "Disk", "Journal", "JournalError"]
