"""Event files of TensorBoard: scalars, read without tensorboard or tensorflow.

A file is a sequence of records: length (8 bytes, little endian), checksum (4), an Event, checksum (4). Event, Summary,
Summary.Value and TensorProto are messages of protocol buffers; the numbers of the fields that are used here:

    Event       2 step, 5 summary
    Summary     1 value (repeated)
    Value       1 tag, 2 simple_value (float), 8 tensor
    Tensor      1 dtype, 4 content (bytes), 5 floats, 6 doubles

Other fields and values, such as pictures and histograms, are passed over.
"""

import struct
from collections.abc import Iterator
from typing import Any

from .rows import LimitedFile, Row

LARGEST = 64 * 2**20
"""Upper limit for a record, bytes."""
FIRST = b"brain.Event:"
"""Text in the first record of an event file."""
STEP, SUMMARY, VALUE, TAG, SIMPLE, TENSOR = 2, 5, 1, 1, 2, 8
DTYPE, CONTENT, FLOATS, DOUBLES = 1, 4, 5, 6
NUMBERS = {1: "<f", 2: "<d"}
"""Formats of the dtypes float and double."""


def is_events(head: bytes) -> bool:
    return FIRST in head[:64]


def read_events(file: LimitedFile) -> Iterator[Row]:
    """Yield a row for each event with scalars; then one with the step None if the file is damaged."""
    while len(start := file.read(12)) == 12:
        (length,) = struct.unpack_from("<Q", start)
        if length > LARGEST:
            yield Row("", None, {})
            return
        event = file.read(length)
        if len(event) < length or len(file.read(4)) < 4:
            return  # the last record, still being written
        try:
            fields = dict(_fields(event))
            values = [_scalar(value) for key, value in _fields(fields.get(SUMMARY, b"")) if key == VALUE]
            metrics = {tag: number for tag, number in values if number is not None}
        except (ValueError, TypeError, IndexError, struct.error):
            yield Row("", None, {})
            return
        if metrics:
            yield Row("", fields.get(STEP, 0), metrics)


def _scalar(value: bytes) -> tuple[str, float | None]:
    """Return tag and number of a Summary.Value; None if it is no scalar."""
    fields = dict(_fields(value))
    tag = fields[TAG].decode("utf-8", "replace") if TAG in fields else ""
    if SIMPLE in fields:
        return tag, struct.unpack("<f", fields[SIMPLE])[0]
    tensor = dict(_fields(fields.get(TENSOR, b"")))
    text = tensor.get(CONTENT) or tensor.get(FLOATS) or tensor.get(DOUBLES) or b""
    form = NUMBERS.get(tensor.get(DTYPE, 0), "")
    return tag, struct.unpack(form, text)[0] if form and len(text) == struct.calcsize(form) else None


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
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
