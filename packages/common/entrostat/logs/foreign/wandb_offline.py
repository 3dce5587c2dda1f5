"""Offline runs of Weights & Biases: the file run-ID.wandb, read without wandb and without a server.

A file is a log as LevelDB writes them: a head of 7 bytes, counted to the first of blocks of 32 KiB. A block has chunks:
checksum (4 bytes), length (2, little endian), kind (1), content; fewer than 7 bytes at its end are padding. Chunks make
records, messages of protocol buffers; the numbers of the fields that are used here:

    Record      2 history
    History     1 item (repeated)
    Item        1 key, 2 nested key (repeated), 16 value as JSON
"""

import json
import struct
from collections.abc import Iterator

from .protocol_buffers import fields
from .rows import LimitedFile, Row, row, step_names

HEAD = b":W&B"
BLOCK, CHUNK = 32 * 2**10, 7
"""Bytes of a block, and of a chunk without its content."""
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
"""Kinds of chunks: a whole record, or a part of one."""
LARGEST = 64 * 2**20
"""Upper limit for a record, bytes."""
HISTORY, ITEM, KEY, NESTED, VALUE = 2, 1, 1, 2, 16


def is_offline(head: bytes) -> bool:
    return head.startswith(HEAD)


def read_offline(file: LimitedFile) -> Iterator[Row]:
    """Yield a row for each record with metrics; then one with the step None if the file is damaged."""
    for record in _records(file):
        try:
            parts = [] if record is None else [value for key, value in fields(record) if key == HISTORY]
            lines = [dict(_item(value) for key, value in fields(part) if key == ITEM) for part in parts]
        except (ValueError, TypeError, IndexError, AttributeError, RecursionError):
            record = None
        if record is None:
            yield Row("", None, {})
            return
        yield from (row(line, step_names(line)) for line in lines)


def _records(file: LimitedFile) -> Iterator[bytes | None]:
    """Yield the records, without one that is still being written; then None if the file is damaged."""
    at, parts, size = len(file.read(CHUNK)), list[bytes](), 0
    while True:
        if (left := BLOCK - at % BLOCK) < CHUNK:
            at += len(file.read(left))
        start = file.read(CHUNK)
        if len(start) < CHUNK:
            return
        length, kind = struct.unpack_from("<HB", start, 4)
        content = file.read(length)
        if len(content) < length:
            return
        at += CHUNK + length
        if kind in (WHOLE, FIRST):
            parts, size = [], 0
        parts.append(content)
        size += length
        if not WHOLE <= kind <= LAST or size > LARGEST:
            yield None
            return
        if kind in (WHOLE, LAST):
            yield b"".join(parts)


def _item(message: bytes) -> tuple[str, object]:
    """Return name and value of an item of the history; None for a value that is no JSON."""
    names, value = [], None
    for key, content in fields(message):
        if key in (KEY, NESTED):
            names.append(content.decode("utf-8", "replace"))
        elif key == VALUE:
            value = json.loads(content)
    return ".".join(names), value
