"""A kind of log: lines such as "step=3 H=0.51 R=0.25". Once installed, llmtrain diagnose and the page Runs read it."""

from collections.abc import Iterator

from entrostat.logs.foreign.foreign_runs import Kind
from entrostat.logs.foreign.rows import LimitedFile, Row

NAMES = {"H": "entropy", "R": "reward"}


def fits(head: bytes) -> bool:
    return head.startswith(b"step=") and b" H=" in head.partition(b"\n")[0]


def read(file: LimitedFile) -> Iterator[Row]:
    for line in file.lines():
        try:
            found = {name: float(value) for name, _, value in (word.partition("=") for word in line.split())}
            yield Row("", found.pop("step"), {NAMES.get(name, name): value for name, value in found.items()})
        except (ValueError, KeyError):
            yield Row("", None, {})  # counted and told as unreadable


KIND = Kind("lines of name=value", fits, read)
