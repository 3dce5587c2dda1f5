"""Bytes of a log: unpacked, decoded, and never more than asked for."""

import codecs
import gzip
import io

import pytest

from entrostat.logs.foreign.rows import LimitedFile
from entrostat.logs.foreign.unwrapped import unwrapped

TEXT = '{"step": 1, "entropy": 0.5, "note": "é → 🙂"}\n' * 50
ENCODED = {
    "utf-8": TEXT.encode("utf-8-sig"),
    "utf-16-le": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
    "utf-16-be": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "utf-32-le": codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
    "utf-32-be": codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED)
def test_what_has_a_mark_is_utf_8_without_it(content):
    whole = TEXT.encode()
    assert unwrapped(io.BytesIO(content), 10**6).read() == whole
    assert unwrapped(io.BytesIO(gzip.compress(content)), 10**6).read() == whole
    for most in (1, 100, len(whole) - 1, len(whole)):
        part = LimitedFile(unwrapped(io.BytesIO(content), most), most)
        assert part.cut == (most < len(whole))
        assert part.read(10**6)[: most - 4] == whole[:most][: most - 4]


def test_other_files_are_as_they_were():
    file = io.BytesIO(TEXT.encode())
    file.read(10)
    assert unwrapped(file, 100) is file
    assert file.tell() == 0


def test_no_more_is_unpacked_than_will_be_read():
    bomb = io.BytesIO(gzip.compress(bytes(10**7)))
    assert len(unwrapped(bomb, 1000).read()) == 1001


def test_parts_of_a_gzip_file_are_one_and_a_damaged_one_is_refused():
    parts = gzip.compress(b"step:1 - a:1\n") + gzip.compress(b"step:2 - a:2\n")
    assert unwrapped(io.BytesIO(parts), 1000).read() == b"step:1 - a:1\nstep:2 - a:2\n"
    whole = gzip.compress(TEXT.encode())
    for damaged in (whole[:-4], whole[:20], whole[:30] + b"\xff" * 20 + whole[50:], b"\x1f\x8bx"):
        with pytest.raises(ValueError, match="unpack it with gunzip"):
            unwrapped(io.BytesIO(damaged), 10**6)
