"""Messages of protocol buffers as their fields, read without their definitions."""

from collections.abc import Iterator
from typing import Any


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field: an integer, or the bytes of a number or a message.

    Raises ValueError, TypeError or IndexError if the message is damaged.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size, at = _varint(message, at) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), at)
        if size < 0 or at + size > len(message):
            raise ValueError("damaged")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the integer at a place, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("damaged")
