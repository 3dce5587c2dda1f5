"""Bytes of a log as UTF-8: gzip is unpacked, and text that starts with a byte order mark is decoded.

Every reader gets its bytes from here, so that none of them knows of either.
"""

import codecs
import gzip
import zlib
from io import BytesIO
from typing import BinaryIO

GZIP = b"\x1f\x8b"
ENDING = ".gz"
MARKS = {
    codecs.BOM_UTF8: ("utf-8", 1),
    codecs.BOM_UTF32_LE: ("utf-32-le", 4),
    codecs.BOM_UTF32_BE: ("utf-32-be", 4),
    codecs.BOM_UTF16_LE: ("utf-16-le", 2),
    codecs.BOM_UTF16_BE: ("utf-16-be", 2),
}
"""Encoding for each byte order mark, and the most bytes that it takes for one of UTF-8; longer marks come first."""


def unwrapped(file: BinaryIO, most: int) -> BinaryIO:
    """Return an open file that can seek, at its beginning, as a file of UTF-8 without a mark.

    most: upper limit for what will be read, bytes; of what is unpacked or decoded, one byte more is kept, so that the
    reader sees that there is more. Raises ValueError if a gzip file is damaged.
    """
    file.seek(0)
    if file.read(len(GZIP)) == GZIP:
        file.seek(0)
        try:
            file = BytesIO(gzip.GzipFile(fileobj=file).read(most + 1))
        except (OSError, EOFError, zlib.error):
            raise ValueError("is a gzip file that is damaged or still being written: unpack it with gunzip") from None
    file.seek(0)
    start = file.read(max(map(len, MARKS)))
    file.seek(0)
    for mark, (encoding, widest) in MARKS.items():
        if start.startswith(mark):
            file.seek(len(mark))
            content = file.read(widest * (most + 1))
            return BytesIO(content if widest == 1 else content.decode(encoding, "replace").encode()[: most + 1])
    return file
