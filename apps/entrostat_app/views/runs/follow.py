"""A file of lines that grows while it is read: every line is read once."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LONGEST = 16 * 2**20
"""Bytes of a line; a file with a longer one is none of ours."""
REMEMBERED = 4096
"""Bytes of the last line that tell whether the file still is what it was."""


class Follower:
    """The whole lines of the file at `path`, up to its first `most` bytes."""

    def __init__(self, path: Path, most: int) -> None:
        self.path = path
        self.most = most
        self.offset = 0
        """Bytes read."""
        self.cut = False
        """Whether there is more than `most`."""
        self.changed = 0.0
        """When the file was last written to, seconds since 1970."""
        self._stamp: tuple[int, int, int] | None = None
        self._last = b""

    def begins_anew(self) -> bool:
        """Whether what was read before is no longer in the file, so that reading begins anew."""
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
        """Place and text of every whole line that was added; a torn last line waits for its rest.

        Raises ValueError, one line, on a line longer than LONGEST.
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
