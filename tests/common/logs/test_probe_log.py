import gzip

import pytest

from entrostat.logs.probe_log import FILE, append_probes, keep_probes, parse_probes, read_probes

ANSWERS = [{"probe": 0, "sample": i, "tokens": ["π", "\u2028"]} for i in range(2)]


@pytest.fixture
def log(tmp_path):
    for step in (0, 10, 20):
        append_probes(tmp_path, step, ANSWERS)
    return tmp_path


def test_what_is_written_can_be_read(log):
    found = read_probes((log / FILE).read_bytes())
    assert list(found) == [0, 10, 20]
    assert parse_probes(found[10]) == [{"step": 10, **answer} for answer in ANSWERS]
    assert gzip.decompress((log / FILE).read_bytes()) == b"".join(found.values())  # for zcat it is one text


def test_resuming_drops_steps_that_will_be_done_again(log):
    keep_probes(log, before=20)
    append_probes(log, 20, ANSWERS[:1])
    found = read_probes((log / FILE).read_bytes())
    assert {step: len(parse_probes(text)) for step, text in found.items()} == {0: 2, 10: 2, 20: 1}
    keep_probes(log, before=None)
    assert not (log / FILE).exists()


def test_a_cut_or_damaged_end_is_left_out(log):
    whole = (log / FILE).read_bytes()
    assert list(read_probes(whole[:-5])) == [0, 10]
    assert list(read_probes(whole + b"damaged")) == [0, 10, 20]
    assert list(read_probes(whole + gzip.compress(b"[1]\n"))) == [0, 10, 20]
    assert list(read_probes(whole + gzip.compress(b'{"step": "1"}\n'))) == [0, 10, 20]


def test_no_more_is_unpacked_than_the_limit(log):
    whole = (log / FILE).read_bytes()
    size = len(gzip.decompress(whole)) // 3
    assert list(read_probes(whole, limit=2 * size)) == [0, 10]
    bomb = gzip.compress(b'{"step": 30}\n' + bytes(10**7))
    assert list(read_probes(whole + bomb, limit=10**5)) == [0, 10, 20]


def test_lines_must_be_objects():
    with pytest.raises(ValueError, match="a line is not a JSON object"):
        parse_probes(b'{"step": 1}\n[]\n')
