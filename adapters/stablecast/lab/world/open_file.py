"""Open files of a simulated file system: what descriptors stand for."""

import os

from stablecast.lab.world.inodes import DirectoryInode, FileInode


class OpenFile:
    """An open file: descriptors stand for it, and duplicates of a descriptor share it.

    Attributes:
        inode: The file or directory.
        path: The path by which it was opened.
        flags: The flags of `os.open`.
        position: The offset of the next read or write, in bytes.
        references: The count of descriptors.
    """

    __slots__ = ("appends", "flags", "inode", "path", "position", "readable", "references", "synced", "writable")

    def __init__(self, inode: FileInode | DirectoryInode, path: str, flags: int) -> None:
        """Begin at offset 0."""
        access = flags & os.O_ACCMODE
        self.inode = inode
        self.path = path
        self.flags = flags
        self.position = 0
        self.references = 1
        self.readable = access != os.O_WRONLY
        self.writable = access != os.O_RDONLY
        self.appends = bool(flags & os.O_APPEND)
        self.synced = bool(flags & (os.O_DSYNC | os.O_SYNC))
        inode.opens += 1
