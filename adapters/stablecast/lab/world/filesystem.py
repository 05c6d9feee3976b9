"""A simulated POSIX file system: the files that one process of a simulated host sees.

Each process has a `FileSystem` of its own, with its descriptors and its working directory. The processes of a host
share a `SimulatedDisk`, which has the durable contents and the faults. Methods are named like the functions of `os`,
and have their arguments, results and errors. Permissions are kept and not judged, as for root.

After `kill` or `crash` every call fails. A restarted process gets a new `FileSystem` over the same disk.
"""

import errno
import os
from collections.abc import Callable, Iterator
from random import Random
from typing import IO, Any, Final, Self

from stablecast.lab.world.descriptor_calls import DescriptorCalls, OpenFile, stat_of
from stablecast.lab.world.directory_entries import SimulatedEntries
from stablecast.lab.world.disk import DiskSpeed, SimulatedDisk, failure
from stablecast.lab.world.file_objects import checked_mode, flags_of, opened
from stablecast.lab.world.inodes import DirectoryInode, FileInode, Inode, LinkInode

NAME_BYTES: Final = 255
"""Bytes of one name at most."""

MAX_LINKS: Final = 40
"""Symbolic links that one path may follow, like the system's."""

_UNSUPPORTED_FLAGS: Final = getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class FileSystem(DescriptorCalls):
    """The files of one process; see the module."""

    def __init__(self, disk: SimulatedDisk, numbers: Iterator[int] | None = None, directory: str = "/") -> None:
        """Show a disk to a new process.

        Args:
            disk: The disk.
            numbers: Gives each descriptor its number; share it among the file systems of a world.
            directory: The working directory.
        """
        super().__init__(disk, disk.descriptors if numbers is None else numbers)
        disk.make_directories(directory)
        self._directory = self._at(directory)[2]
        self._umask = 0o022
        self._temporary = 0

    def temporary_name(self) -> str:
        """Return another name for a temporary file, which depends on nothing but the names before."""
        self._temporary += 1
        return f"{self._temporary:08}"

    @classmethod
    def fresh(
        cls, now: Callable[[], int], rng: Random, wait: Callable[[int], None], speed: DiskSpeed | None = None
    ) -> Self:
        """Return a file system with an empty disk of its own; see `SimulatedDisk` for the arguments."""
        return cls(SimulatedDisk(now, rng, wait, speed))

    def crash(self, rng: Random) -> None:
        """End the process by a power cut of its host; other processes of the host must have ended before."""
        self.kill()
        self.disk.crash(rng)

    # -------------------------------------------------------------------------------------------------------- opening

    def open(self, path: AnyPath, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """Return a new descriptor, as `os.open` does."""
        name = os.fsdecode(path)
        if flags & _UNSUPPORTED_FLAGS == _UNSUPPORTED_FLAGS != 0:
            raise failure(errno.EOPNOTSUPP, name)
        creates = bool(flags & os.O_CREAT)
        if creates and flags & os.O_DIRECTORY:
            raise failure(errno.EINVAL, name)
        exclusive = creates and bool(flags & os.O_EXCL)
        follow = not exclusive and not flags & os.O_NOFOLLOW
        parent, last, inode = self._at(name, dir_fd, follow=follow, creates=creates)
        if inode is not None and exclusive:
            raise failure(errno.EEXIST, name)
        try:
            self.check_limit()
        except OSError as error:
            raise failure(errno.EMFILE, name) from error
        if inode is None:
            if not creates:
                raise failure(errno.ENOENT, name)
            inode = self._created(parent, last, name, mode)
        elif isinstance(inode, LinkInode):
            raise failure(errno.ENOTDIR if flags & os.O_DIRECTORY else errno.ELOOP, name)
        elif isinstance(inode, DirectoryInode):
            if creates or flags & (os.O_ACCMODE | os.O_TRUNC):
                raise failure(errno.EISDIR, name)
        else:
            self._check_open(inode, name, flags)
        assert isinstance(inode, FileInode | DirectoryInode)
        fd = next(self._numbers)
        self._files[fd] = OpenFile(inode, name, flags)
        return fd

    def open_file(
        self,
        path: AnyPath | int,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Callable[[Any, int], int] | None = None,
    ) -> IO[Any]:
        text = (encoding, errors, newline)
        checked_mode(mode, buffering, *text)
        if isinstance(path, int):
            return opened(self, path, path, mode, buffering, text, closefd=closefd)
        if not closefd:
            raise ValueError("Cannot use closefd=False with file name")
        name = os.fspath(path)
        fd = self.open(name, flags_of(mode), 0o666) if opener is None else opener(name, flags_of(mode))
        try:
            return opened(self, fd, name, mode, buffering, text, closefd=True)
        except OSError:
            self.close(fd)
            raise

    def _check_open(self, inode: Inode, name: str, flags: int) -> None:
        """Refuse what a file cannot do, and empty it if the flags ask for that."""
        if flags & os.O_DIRECTORY:
            raise failure(errno.ENOTDIR, name)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            self.disk.before_change(name)
        if flags & os.O_TRUNC and isinstance(inode, FileInode) and inode.size:
            self.disk.resize(inode, 0)

    def _created(self, parent: DirectoryInode, last: str, name: str, mode: int) -> FileInode:
        if not last or not parent.links:
            raise failure(errno.ENOENT if last else errno.EISDIR, name)
        inode = self.disk.new_file(mode & ~self._umask)
        self._link_in(parent, last, inode, name)
        return inode

    # ---------------------------------------------------------------------------------------------------------- names

    def mkdir(self, path: AnyPath, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        """Make an empty directory; its parent must exist."""
        name = os.fsdecode(path)
        parent, last, inode = self._at(name, dir_fd, follow=False, entry=True)
        if inode is not None or not last:
            raise failure(errno.EEXIST, name)
        if not parent.links:
            raise failure(errno.ENOENT, name)
        self._link_in(parent, last, self.disk.new_directory(mode & ~self._umask, parent), name)

    def rmdir(self, path: AnyPath, *, dir_fd: int | None = None) -> None:
        name = os.fsdecode(path)
        if name.rstrip("/").endswith("/.") or name == ".":
            raise failure(errno.EINVAL, name)
        parent, last, inode = self._at(name, dir_fd, follow=False, entry=True)
        if inode is None:
            raise failure(errno.ENOENT, name)
        if not isinstance(inode, DirectoryInode):
            raise failure(errno.ENOTDIR, name)
        if inode.entries:
            raise failure(errno.ENOTEMPTY, name)
        if not last:
            raise failure(errno.EBUSY, name)
        self._unlink_from(parent, last, inode, name)

    def unlink(self, path: AnyPath, *, dir_fd: int | None = None) -> None:
        """Remove a name. Open descriptors of the file go on."""
        name = os.fsdecode(path)
        parent, last, inode = self._at(name, dir_fd, follow=False, entry=True)
        if inode is None:
            raise failure(errno.ENOENT, name)
        if isinstance(inode, DirectoryInode):
            raise failure(errno.EISDIR, name)
        if name.endswith("/"):
            raise failure(errno.ENOTDIR, name)
        self._unlink_from(parent, last, inode, name)

    remove = unlink

    def rename(
        self, source: AnyPath, target: AnyPath, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        """Give a file or directory another name, in place of what has that name."""
        old, new = os.fsdecode(source), os.fsdecode(target)
        parent, last, inode = self._at(old, src_dir_fd, follow=False, entry=True, pair=(old, new))
        above, name, other = self._at(new, dst_dir_fd, follow=False, entry=True, pair=(old, new))
        if not last or not name:
            raise failure(errno.EBUSY, old, new)
        if inode is None or not above.links:
            raise failure(errno.ENOENT, old, new)
        self._check_rename(inode, above, other, (old, new))
        if other is inode:
            return
        self.disk.before_change(old)
        if other is not None:
            other.links -= 1
        self.disk.names.apply((parent, last, inode, None), (above, name, other, inode))
        if other is not None:
            self.disk.release(other)
        parent.mtime = parent.ctime = above.mtime = above.ctime = inode.ctime = self.disk.now()

    replace = rename

    def _check_rename(self, inode: Inode, above: DirectoryInode, other: Inode | None, names: tuple[str, str]) -> None:
        old, new = names
        if not isinstance(inode, DirectoryInode):
            if old.endswith("/") or new.endswith("/"):
                raise failure(errno.ENOTDIR, old, new)
            if isinstance(other, DirectoryInode):
                raise failure(errno.EISDIR, old, new)
            return
        # A directory that moved below itself would be cut off from the root.
        at = above
        while at is not at.parent and at is not inode:
            at = at.parent
        if at is inode:
            raise failure(errno.EINVAL, old, new)
        if other is None or other is inode:
            return
        if not isinstance(other, DirectoryInode):
            raise failure(errno.ENOTDIR, old, new)
        if other.entries:
            raise failure(errno.ENOTEMPTY, old, new)

    def link(
        self,
        source: AnyPath,
        target: AnyPath,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = False,
    ) -> None:
        old, new = os.fsdecode(source), os.fsdecode(target)
        _, _, inode = self._at(old, src_dir_fd, follow=follow_symlinks, pair=(old, new))
        if inode is None:  # It is looked up before the way to the new name.
            raise failure(errno.ENOENT, old, new)
        parent, last, other = self._at(new, dst_dir_fd, follow=False, entry=True, pair=(old, new))
        if other is not None:
            raise failure(errno.EEXIST, old, new)
        if new.endswith("/"):
            raise failure(errno.ENOENT, old, new)
        if isinstance(inode, DirectoryInode):
            raise failure(errno.EPERM, old, new)
        self._link_in(parent, last, inode, new)

    def symlink(
        self,
        source: AnyPath,
        target: AnyPath,
        target_is_directory: bool = False,
        *,
        dir_fd: int | None = None,
    ) -> None:
        """Make a symbolic link `target` that leads to `source`."""
        old, new = os.fsdecode(source), os.fsdecode(target)
        parent, last, inode = self._at(new, dir_fd, follow=False, entry=True, pair=(old, new))
        if inode is not None:
            raise failure(errno.EEXIST, old, new)
        if not old or new.endswith("/") or not parent.links:
            raise failure(errno.ENOENT, old, new)
        self._link_in(parent, last, self.disk.new_link(old), new)

    def readlink(self, path: AnyPath, *, dir_fd: int | None = None) -> str:
        inode = self._existing(path, dir_fd, follow=False)
        if not isinstance(inode, LinkInode):
            raise failure(errno.EINVAL, os.fsdecode(path))
        return inode.target

    def listdir(self, path: AnyPath | int = ".") -> list[str]:
        """Return the names in a directory, in an order that depends on the seed only."""
        inode = self.file_of(path).inode if isinstance(path, int) else self._existing(path)
        if not isinstance(inode, DirectoryInode):
            raise failure(errno.ENOTDIR, None if isinstance(path, int) else os.fsdecode(path))
        return self.disk.listing(inode)

    def scandir(self, path: AnyPath | int = ".") -> SimulatedEntries:
        """Return an iterator over the entries of a directory, as `os.scandir` does."""
        return SimulatedEntries(path, self.listdir(path), self.stat)

    # -------------------------------------------------------------------------------------------------- what is known

    def stat(self, path: AnyPath, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        """Return what `os.stat` does, with virtual times."""
        return stat_of(self._existing(path, dir_fd, follow=follow_symlinks))

    def lstat(self, path: AnyPath, *, dir_fd: int | None = None) -> os.stat_result:
        """Return what `os.lstat` does: a link is not followed."""
        return self.stat(path, dir_fd=dir_fd, follow_symlinks=False)

    def access(
        self,
        path: AnyPath,
        mode: int,
        *,
        dir_fd: int | None = None,
        effective_ids: bool = False,
        follow_symlinks: bool = True,
    ) -> bool:
        """Return True if a path exists and may be used so: root may everything, except to run what nobody may run."""
        try:
            inode = self._existing(path, dir_fd, follow=follow_symlinks)
        except OSError:
            return False
        if mode & os.W_OK and self.disk.read_only:
            return False
        return not mode & os.X_OK or isinstance(inode, DirectoryInode) or bool(inode.mode & 0o111)

    def exists(self, path: AnyPath, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> bool:
        return self.access(path, os.F_OK, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    def statvfs(self, path: AnyPath) -> os.statvfs_result:
        self._existing(path)
        return self._room()

    def truncate(self, path: AnyPath, size: int) -> None:
        if size < 0:
            raise failure(errno.EINVAL, os.fsdecode(path))
        inode = self._existing(path)
        if not isinstance(inode, FileInode):
            raise failure(errno.EISDIR, os.fsdecode(path))
        self.disk.resize(inode, size)

    def chmod(self, path: AnyPath, mode: int, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> None:
        """Set the permissions, which are shown and never judged."""
        self._set_mode(self._existing(path, dir_fd, follow=follow_symlinks), mode)

    def chown(
        self, path: AnyPath, uid: int, gid: int, *, dir_fd: int | None = None, follow_symlinks: bool = True
    ) -> None:
        """Set owner and group, which are shown and never judged; -1 leaves one as it is."""
        inode = self._existing(path, dir_fd, follow=follow_symlinks)
        self.disk.before_change(os.fsdecode(path))
        inode.uid = inode.uid if uid == -1 else uid
        inode.gid = inode.gid if gid == -1 else gid
        inode.ctime = self.disk.now()

    def utime(
        self,
        path: AnyPath | int,
        times: tuple[float, float] | None = None,
        *,
        ns: tuple[int, int] | None = None,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Set the times of the last read and change, by default to now."""
        if times is not None and ns is not None:
            raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
        inode = self.file_of(path).inode if isinstance(path, int) else self._existing(path, dir_fd, follow_symlinks)
        self.disk.before_change()
        now = self.disk.now()
        if times is not None:
            inode.atime, inode.mtime = (int(time * 1_000_000_000) for time in times)
        else:
            inode.atime, inode.mtime = ns or (now, now)
        inode.ctime = now

    def getcwd(self) -> str:
        names: list[str] = []
        at = self._directory
        assert isinstance(at, DirectoryInode)
        while at is not at.parent:
            if not at.links:
                raise failure(errno.ENOENT)
            names.append(next(name for name, inode in at.parent.entries.items() if inode is at))
            at = at.parent
        return "/" + "/".join(reversed(names))

    def chdir(self, path: AnyPath | int) -> None:
        inode = self.file_of(path).inode if isinstance(path, int) else self._existing(path)
        if not isinstance(inode, DirectoryInode):
            raise failure(errno.ENOTDIR, None if isinstance(path, int) else os.fsdecode(path))
        self._directory = inode

    def umask(self, mask: int) -> int:
        """Set the permissions that new files do not get; return the mask before."""
        before, self._umask = self._umask, mask & 0o777
        return before

    def shows_real(self, path: str) -> bool:
        """Return True if a missing path may be looked for on the real machine.

        That is so below directories that the world made for its hosts. Below directories that a program made, a
        missing file is missing.
        """
        at = self.disk.root
        for name in filter(None, os.path.normpath(path).split("/")):
            inode = at.entries.get(name)
            if not isinstance(inode, DirectoryInode):
                break
            at = inode
        return not at.whole

    # ---------------------------------------------------------------------------------------------------------- paths

    def _existing(self, path: AnyPath, dir_fd: int | None = None, follow: bool = True) -> Inode:
        name = os.fsdecode(path)
        inode = self._at(name, dir_fd, follow=follow)[2]
        if inode is None:
            raise failure(errno.ENOENT, name)
        return inode

    def _at(
        self,
        path: str,
        dir_fd: int | None = None,
        *,
        follow: bool = True,
        creates: bool = False,
        entry: bool = False,
        pair: tuple[str, str | None] | None = None,
    ) -> tuple[DirectoryInode, str, Inode | None]:
        """Return the directory, the last name and the inode of a path.

        Args:
            path: The path.
            dir_fd: The directory at which a relative path begins, None for the working directory.
            follow: True to follow a link in the last place.
            creates: True if a missing file may be created there: a slash at the end is then an error.
            entry: True if the call is about the last name itself. The caller judges a slash at the end.
            pair: The paths that errors name.

        The name is empty if the path ends in a directory that needs no name: the root, `.` or `..`.
        """
        shown = pair or (path, None)
        if self.gone:
            raise failure(errno.EIO, *shown)
        if "\0" in path:
            raise ValueError("embedded null byte")
        if not path:
            raise failure(errno.ENOENT, *shown)
        at: Inode | None = self.disk.root
        if not path.startswith("/"):
            at = getattr(self, "_directory", at) if dir_fd is None else self.file_of(dir_fd).inode
        names = [name for name in reversed(path.split("/")) if name]
        slash = path.endswith("/")
        parent, last, followed = at, "", 0
        while names:
            name = names.pop()
            if not isinstance(at, DirectoryInode):
                raise failure(errno.ENOENT if at is None else errno.ENOTDIR, *shown)
            if slash and creates and not names:
                raise failure(errno.EISDIR, *shown)
            if name in (".", ".."):
                at = at if name == "." else at.parent
                parent, last = at, ""
                continue
            if len(os.fsencode(name)) > NAME_BYTES:
                raise failure(errno.ENAMETOOLONG, *shown)
            parent, last, at = at, name, at.entries.get(name)
            if isinstance(at, LinkInode) and (names or follow or (slash and not entry)):
                followed += 1
                if followed > MAX_LINKS:
                    raise failure(errno.ELOOP, *shown)
                slash = slash or (not names and at.target.endswith("/"))
                names += [name for name in reversed(at.target.split("/")) if name]
                at, last = (self.disk.root if at.target.startswith("/") else parent), ""
        assert isinstance(parent, DirectoryInode)
        if slash and not isinstance(at, DirectoryInode) and not entry:
            raise failure(errno.ENOENT if at is None else errno.ENOTDIR, *shown)
        return parent, last, at

    def _link_in(self, parent: DirectoryInode, last: str, inode: Inode, name: str) -> None:
        self.disk.before_change(name)
        self.disk.names.apply((parent, last, None, inode))
        inode.links += 1
        parent.mtime = parent.ctime = self.disk.now()

    def _unlink_from(self, parent: DirectoryInode, last: str, inode: Inode, name: str) -> None:
        self.disk.before_change(name)
        self.disk.names.apply((parent, last, inode, None))
        inode.links -= 1
        self.disk.release(inode)
        parent.mtime = parent.ctime = inode.ctime = self.disk.now()
