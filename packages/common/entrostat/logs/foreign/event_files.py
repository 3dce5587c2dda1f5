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

from .protocol_buffers import fields
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
            found = dict(fields(event))
            values = [_scalar(value) for key, value in fields(found.get(SUMMARY, b"")) if key == VALUE]
            metrics = {tag: number for tag, number in values if number is not None}
        except (ValueError, TypeError, IndexError, struct.error):
            yield Row("", None, {})
            return
        if metrics:
            yield Row("", found.get(STEP, 0), metrics)


def _scalar(value: bytes) -> tuple[str, float | None]:
    """Return tag and number of a Summary.Value; None if it is no scalar."""
    found = dict(fields(value))
    tag = found[TAG].decode("utf-8", "replace") if TAG in found else ""
    if SIMPLE in found:
        return tag, struct.unpack("<f", found[SIMPLE])[0]
    tensor = dict(fields(found.get(TENSOR, b"")))
    text = tensor.get(CONTENT) or tensor.get(FLOATS) or tensor.get(DOUBLES) or b""
    form = NUMBERS.get(tensor.get(DTYPE, 0), "")
    return tag, struct.unpack(form, text)[0] if form and len(text) == struct.calcsize(form) else None
