"""The store's disk: an append-only journal with a checksum per record and one sync per batch.

`record_format` defines the bytes, `segments` the files, `summary` the contents of a full file, and `disk` the system
calls. `index` and `number_pieces` know which record holds which number. `recovery` scans at open. `writer` and
`fetcher` are the threads that write and read, and `unsynced_records` is the queue between them. `lock` admits one
process per directory. `journal` is the class that a store uses.
"""

from stablecast.store.journal.disk import DISK, SEGMENT_BYTES, Disk
from stablecast.store.journal.journal import MAX_QUEUED_BYTES, Journal
from stablecast.store.journal.record_format import JournalError

__all__ = ["DISK", "MAX_QUEUED_BYTES", "SEGMENT_BYTES", "Disk", "Journal", "JournalError"]
