"""Databases of `sqlite3` in the files of a world.

sqlite reads and writes files itself, so it never meets a simulated disk. In a world a database lives in the memory of
its connection, and its file in the world: each transaction begins with what the file has, and its commit writes the
whole file anew, syncs it and renames it, as one step. So a crash finds what was committed, and a disk that is full or
fails does so at the commit. A commit behind that of another connection fails as a database that is locked.
"""

import os
import sqlite3
from pathlib import Path
from typing import Any


class FileCursor(sqlite3.Cursor):
    """A cursor whose statements begin with the file, and are kept there if they commit."""

    connection: "FileConnection"

    def execute(self, *asked: Any) -> Any:
        return self.connection.run(super().execute, *asked)

    def executemany(self, *asked: Any) -> Any:
        return self.connection.run(super().executemany, *asked)

    def executescript(self, *asked: Any) -> Any:
        return self.connection.run(super().executescript, *asked)


class FileConnection(sqlite3.Connection):
    """A connection to a database in a file; `open_in` makes it."""

    path = Path()
    kept = b""

    @classmethod
    def open_in(cls, path: Path, *args: Any, **options: Any) -> "FileConnection":
        """Return a connection to the database in a file. Raises sqlite3.Error as `sqlite3.connect`."""
        found = cls(":memory:", *args, **options)
        found.path = path
        if not path.parent.is_dir():
            raise sqlite3.OperationalError("unable to open database file")
        found.read()
        return found

    def read(self) -> None:
        """Begin with what the file has."""
        data = self._found()
        if data != self.kept:
            self.deserialize(data)
            self.kept = data

    def keep(self) -> None:
        """Write the file if something was committed. Raises sqlite3.Error, OSError."""
        if self.in_transaction or (data := self.serialize()) == self.kept:
            return
        if self._found() != self.kept:
            raise sqlite3.OperationalError("database is locked")
        written = self.path.with_name(f"{self.path.name}-journal")
        with written.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        written.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self.kept = data

    def run(self, statement: Any, *asked: Any) -> Any:
        if not self.in_transaction:
            self.read()
        found = statement(*asked)
        self.keep()
        return found

    def cursor(self, factory: Any = FileCursor) -> Any:
        return super().cursor(factory)

    # The methods of the base class would not ask `cursor`.

    def execute(self, *asked: Any) -> Any:
        return self.cursor().execute(*asked)

    def executemany(self, *asked: Any) -> Any:
        return self.cursor().executemany(*asked)

    def executescript(self, *asked: Any) -> Any:
        return self.cursor().executescript(*asked)

    def commit(self) -> None:
        super().commit()
        self.keep()

    def __exit__(self, *raised: Any) -> Any:
        found = super().__exit__(*raised)
        self.keep()
        return found

    def _found(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""
