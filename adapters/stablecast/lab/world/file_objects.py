"""File objects over simulated descriptors, like those of `open`."""

import codecs
import errno
import io
import os
from typing import IO, Any, Final

from stablecast.lab.world.descriptor_calls import DescriptorCalls
from stablecast.lab.world.disk import failure
from stablecast.lab.world.inodes import DirectoryInode

BUFFER_BYTES: Final = 8192
"""Bytes that a buffered file object collects, as the library's do."""

OPEN_FLAGS: Final = {"r": os.O_RDONLY, "w": os.O_CREAT | os.O_TRUNC, "x": os.O_CREAT | os.O_EXCL, "a": os.O_CREAT}
"""The flags of each mode letter, reading and writing aside."""


class SimulatedRawFile(io.RawIOBase):
    """An unbuffered file object over a descriptor, like `io.FileIO`."""

    def __init__(self, system: DescriptorCalls, fd: int, name: object, mode: str, *, closefd: bool = True) -> None:
        """Make a file object that closes its descriptor if `closefd`."""
        self._system = system
        self._fd = fd
        self._closefd = closefd
        self._readable = "r" in mode or "+" in mode
        self._writable = "r" not in mode or "+" in mode
        self.name = name
        self.mode = _shown_mode(mode)
        if "a" in mode:
            system.lseek(fd, 0, os.SEEK_END)

    @property
    def closefd(self) -> bool:
        return self._closefd

    def fileno(self) -> int:
        """Return the descriptor, which only the simulated file system knows."""
        self._check_open()
        return self._fd

    def readable(self) -> bool:
        self._check_open()
        return self._readable

    def writable(self) -> bool:
        self._check_open()
        return self._writable

    def seekable(self) -> bool:
        self._check_open()
        return True

    def isatty(self) -> bool:
        self._check_open()
        return False

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer; return the count of bytes, 0 at the end."""
        if not self.readable():
            raise io.UnsupportedOperation("File not open for reading")
        view = memoryview(buffer).cast("B")
        data = self._system.read(self._fd, len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        if not self.readable():
            raise io.UnsupportedOperation("File not open for reading")
        return self._system.read(self._fd, max(0, self._system.fstat(self._fd).st_size - self.tell()))

    def write(self, data: Any, /) -> int:
        """Write bytes; return how many of them fit."""
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        if self._system.gone:
            # Buffers of a program that was killed are flushed when they are freed. Nothing is written, and no error is
            # reported, because nobody is left to handle it.
            return memoryview(data).nbytes
        return self._system.write(self._fd, data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check_open()
        return self._system.lseek(self._fd, offset, whence)

    def tell(self) -> int:
        return self.seek(0, os.SEEK_CUR)

    def truncate(self, size: int | None = None, /) -> int:
        """Cut or extend the file to a size in bytes, by default to the position; return the size."""
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        size = self.tell() if size is None else size
        self._system.ftruncate(self._fd, size)
        return size

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        if self._closefd:
            self._system.close(self._fd)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name!r} mode={self.mode!r}>"

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")


def _shown_mode(mode: str) -> str:
    """Return the mode of a raw file as `io.FileIO` shows it."""
    letter = next(letter for letter in "rwxa" if letter in mode)
    if letter in "wr":
        return "rb+" if "+" in mode else f"{letter}b"
    return f"{letter}b+" if "+" in mode else f"{letter}b"


def checked_mode(mode: str, buffering: int, encoding: object, errors: object, newline: object) -> None:
    """Refuse modes and combinations as `io.open` does. Raises ValueError."""
    letters = set(mode)
    if letters - set("axrwb+t") or len(mode) > len(letters):
        raise ValueError(f"invalid mode: {mode!r}")
    if "t" in letters and "b" in letters:
        raise ValueError("can't have text and binary mode at once")
    if len(letters & set("axrw")) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    if "b" in letters:
        for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
            if value is not None:
                raise ValueError(f"binary mode doesn't take {'an' if name != 'newline' else 'a'} {name} argument")
    elif buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    if isinstance(encoding, str) and encoding != "locale":
        codecs.lookup(encoding)


def flags_of(mode: str) -> int:
    """Return the flags of `os.open` for a mode of `open`."""
    letter = next(letter for letter in "rwxa" if letter in mode)
    access = os.O_RDWR if "+" in mode else os.O_RDONLY if letter == "r" else os.O_WRONLY
    return access | OPEN_FLAGS[letter] | (os.O_APPEND if letter == "a" else 0) | os.O_CLOEXEC


def opened(
    system: DescriptorCalls,
    fd: int,
    name: object,
    mode: str,
    buffering: int,
    text: tuple[str | None, str | None, str | None],
    *,
    closefd: bool,
) -> IO[Any]:
    """Return a file object over a descriptor, as `io.open` does.

    Args:
        system: The descriptors of the process.
        fd: The descriptor.
        name: What the file object shows as its name.
        mode: The mode, which `checked_mode` has passed.
        buffering: Like that of `io.open`.
        text: Encoding, errors and newline.
        closefd: True if the file object closes the descriptor.

    Raises:
        OSError: The descriptor is not open, or stands for a directory.
    """
    if isinstance(system.file_of(fd).inode, DirectoryInode):
        raise failure(errno.EISDIR, None if isinstance(name, int) else str(name))
    return _wrapped(SimulatedRawFile(system, fd, name, mode, closefd=closefd), mode, buffering, text)


def _wrapped(
    raw: SimulatedRawFile, mode: str, buffering: int, text: tuple[str | None, str | None, str | None]
) -> IO[Any]:
    """Return the raw file with the buffer and the decoder that its mode asks for."""
    binary = "b" in mode
    if buffering == 0:
        return raw  # type: ignore[return-value]
    size = BUFFER_BYTES if buffering in (-1, 1) else buffering
    buffer: io.BufferedRandom | io.BufferedWriter | io.BufferedReader
    if "+" in mode:
        buffer = io.BufferedRandom(raw, size)
    elif "r" in mode:
        buffer = io.BufferedReader(raw, size)
    else:
        buffer = io.BufferedWriter(raw, size)
    if binary:
        return buffer
    encoding, errors, newline = text
    wrapper = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering=buffering == 1)
    wrapper.mode = mode  # type: ignore[misc]
    return wrapper
