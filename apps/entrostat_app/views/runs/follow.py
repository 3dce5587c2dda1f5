"""Reader of a file of lines that keeps growing: every line is read once."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LONGEST = 16 * 2**20
"""Upper limit for a line, bytes; a file with a longer line is not a run log."""
REMEMBERED = 4096
"""Bytes of the last line that are kept to detect a rewritten file."""


class Follower:
    """Reader of the complete lines in the first `most` bytes of the file at `path`."""

    def __init__(self, path: Path, most: int) -> None:
        self.path = path
        self.most = most
        self.offset = 0
        """Number of bytes read."""
        self.cut = False
        """True if the file has more than `most` bytes."""
        self.changed = 0.0
        """Time of the last write to the file, seconds since 1970."""
        self._stamp: tuple[int, int, int] | None = None
        self._last = b""

    def begins_anew(self) -> bool:
        """Return True if the file no longer holds what was read before; reading then starts from the beginning."""
        stat = self.path.stat()
        if self._stamp == (stat.st_ino, stat.st_size, stat.st_mtime_ns):
            return False
        with self.path.open("rb") as file:
            file.seek(max(self.offset - len(self._last), 0))
            if file.read(len(self._last)) == self._last:
                return False
        self.offset, self._last, self._stamp, self.cut = 0, b"", None, False
        return True

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield offset and text of every complete new line; an incomplete last line waits for its rest.

        Raises ValueError in one line if a line is longer than LONGEST.
        """
        stat = self.path.stat()
        stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if stamp == self._stamp or self.cut:
            return
        with self.path.open("rb") as file:
            yield from self._new(file)
        self._stamp, self.changed = stamp, stat.st_mtime

    def _new(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        file.seek(self.offset)
        while line := file.readline(LONGEST + 1):
            if len(line) > LONGEST:
                raise ValueError(f"{self.path.name} has a line of more than {LONGEST // 2**20} MiB: it is no run log")
            self.cut = self.offset + len(line) > self.most
            if self.cut or not line.endswith(b"\n"):
                return
            place, self.offset = self.offset, self.offset + len(line)
            self._last = line[-REMEMBERED:]
            yield place, line
