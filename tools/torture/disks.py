"""The file system of one store, and its faults.

`plain` is a directory of the machine's own file system. `tmpfs` and `ext4` (on a loop device) are file systems of the
store alone. They can become full, fail, and lose unsynced writes. The module needs a mount namespace of its own.
"""

import contextlib
import fcntl
import itertools
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN: the file system does no more I/O after this call."""
NO_FLUSH = 2
"""Argument of the call: no more data reaches the device, as in a power failure."""
BALLAST = "ballast"
PIECE = 64 * 1024
SEGMENTS = "*.seg"
INODES = 600
"""Inodes of a tmpfs: enough for a store, and soon used up."""


class Disk:
    """The file system of one store. `directory` is the store's directory in it."""

    def __init__(self, place: Path, kind: str, megabytes: int) -> None:
        """Make the file system. Raises CalledProcessError when it cannot be mounted."""
        self.kind = kind
        self._root = place / "root"
        self._image = place / "image"
        self._copy = place / "copy"
        self._aside = place / "root" / "aside"
        self._root.mkdir(parents=True)
        if kind == "ext4":
            with self._image.open("wb") as image:
                image.truncate(megabytes << 20)
            subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(self._image)], check=True)
            self._mount()
        elif kind == "tmpfs":
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,nr_inodes={INODES}", "store", str(self._root)],
                check=True,
            )
        self.directory = self._root / "store"
        self.directory.mkdir()

    def fill(self, how: str = "") -> None:
        """Fill the file system, or use up its `inodes`."""
        if how == "inodes":
            (self._root / BALLAST).mkdir()
            with contextlib.suppress(OSError):
                for number in itertools.count():
                    (self._root / BALLAST / str(number)).touch()
            return
        with (self._root / BALLAST).open("wb") as ballast:
            size, piece = 0, 1 << 30
            while piece >= 4096:
                try:
                    os.posix_fallocate(ballast.fileno(), size, piece)
                    size += piece
                except OSError:
                    piece //= 2

    def free(self) -> None:
        """Undo `fill`."""
        ballast = self._root / BALLAST
        shutil.rmtree(ballast) if ballast.is_dir() else ballast.unlink(missing_ok=True)

    def remove(self, how: str) -> None:
        """Take the directory from a running store: it is `emptied`, `moved` away, or its files are `copied` ones."""
        if how == "emptied":
            self.damage("empty", 0)
            return
        self.directory.rename(self._aside)
        if how == "copied":
            shutil.copytree(self._aside, self.directory, ignore_dangling_symlinks=True)
        else:
            self.directory.mkdir()

    def restored(self, how: str) -> None:
        """Put a `moved` directory back. The store has ended."""
        if how == "moved":
            shutil.rmtree(self.directory)
            self._aside.rename(self.directory)

    def fail(self) -> None:
        """Make the file system read-only, as the kernel does after an error of the device (ext4)."""
        subprocess.run(["mount", "-o", "remount,abort", str(self._root)], check=True, capture_output=True)

    def lose_power(self) -> None:
        """Let no more data reach the device (ext4): unsynced writes are lost after `repair`."""
        descriptor = os.open(self._root, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_FLUSH))
        finally:
            os.close(descriptor)

    def repair(self) -> None:
        """Mount the file system again. No process may use it meanwhile."""
        subprocess.run(["umount", str(self._root)], check=True, capture_output=True)
        # Status 1 means that errors were corrected, which is usual after an abort.
        done = subprocess.run(["e2fsck", "-fy", str(self._image)], check=False, capture_output=True)
        if done.returncode > 1:
            raise OSError(f"e2fsck ended with {done.returncode}: {done.stdout!r}")
        self._mount()

    def copy(self) -> None:
        """Copy the directory, for a later `damage` by `restore`."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self.directory, self._copy, ignore_dangling_symlinks=True)

    def damage(self, how: str, seed: int) -> None:
        """Damage the directory of a stopped store: flip, truncate, zero, remove, empty or restore."""
        rng = random.Random(seed)
        if how == "empty":
            for path in self.directory.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif how == "restore":
            if self._copy.exists():
                shutil.rmtree(self.directory)
                shutil.copytree(self._copy, self.directory)
        else:
            segments = sorted(path for path in self.directory.rglob(SEGMENTS) if path.stat().st_size)
            if segments:
                spoil(rng.choice(segments), how, rng)

    def _mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self._root)], check=True, capture_output=True)


def spoil(path: Path, how: str, rng: random.Random) -> None:
    """Damage one file: flip a bit, truncate it, zero a part of it, or remove it."""
    size = path.stat().st_size
    at = rng.randrange(size)
    if how == "remove":
        path.unlink()
    elif how == "truncate":
        os.truncate(path, at)
    else:
        with path.open("r+b") as file:
            file.seek(at)
            old = file.read(1 if how == "flip" else PIECE)
            file.seek(at)
            file.write(bytes([old[0] ^ 0x10]) if how == "flip" else bytes(len(old)))
