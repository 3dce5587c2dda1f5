import gzip
import json

import pytest
from probed_runs import write

from entrostat.logs.probe_log import FILE
from entrostat_app.views.probes import answers
from entrostat_app.views.probes.answers import Name


def test_answers_of_a_run(tmp_path):
    write(tmp_path)
    assert answers.with_probes(tmp_path, ["a", "b", "nothing"]) == ["a", "b"]
    found = answers.steps(tmp_path, "b")
    assert list(found) == [0, 10, 20]
    brief = found[20][Name(1, 0)]
    assert brief == (("1", "-", "4", "<eos>"), 1.0, 2)
    whole = answers.answer(tmp_path, "b", 20, brief)
    assert (whole["probe"], whole["sample"], whole["response"]) == (1, 0, "1-4")
    assert whole["entropy"] == [0.0, 0.1, 0.2, pytest.approx(0.3)]


def test_a_file_that_grows_is_read_again(tmp_path):
    write(tmp_path)
    assert len(answers.steps(tmp_path, "a")) == 3
    line = {"step": 30, "probe": 0, "sample": 0, "tokens": ["x"]}
    with (tmp_path / "a" / FILE).open("ab") as file:
        file.write(gzip.compress(json.dumps(line).encode()))
    assert list(answers.steps(tmp_path, "a")) == [0, 10, 20, 30]


@pytest.mark.parametrize(
    "line",
    [
        '{"step": 0, "probe": "0", "sample": 0, "tokens": ["x"]}',
        '{"step": 0, "probe": 0, "sample": true, "tokens": ["x"]}',
        '{"step": 0, "probe": 0, "sample": 0, "tokens": "x"}',
        '{"step": 0, "probe": 0, "sample": 0, "tokens": [1]}',
        '{"step": 0}\n[]',
        "{}",
    ],
)
def test_what_is_no_answer_is_left_out(tmp_path, line):
    write(tmp_path)
    (tmp_path / "a" / FILE).write_bytes(gzip.compress(line.encode()))
    with pytest.raises(ValueError, match=r"^a/probes.jsonl.gz has no answer that can be read$"):
        answers.steps(tmp_path, "a")


def test_numbers_that_are_none_are_left_out(tmp_path):
    write(tmp_path)
    numbers = f'"entropy": [NaN, 1e999, {10**400}, true], "reward": {10**400}'
    line = f'{{"step": 0, "probe": 0, "sample": 0, "tokens": ["x"], {numbers}}}'
    (tmp_path / "a" / FILE).write_bytes(gzip.compress(line.encode()))
    brief = answers.steps(tmp_path, "a")[0][Name(0, 0)]
    assert brief.reward is None
    assert answers.answer(tmp_path, "a", 0, brief)["entropy"] == [None] * 4


def test_large_files_and_links_that_lead_out_are_refused(tmp_path, monkeypatch):
    write(tmp_path / "runs")
    monkeypatch.setattr(answers, "LARGEST", 10)
    with pytest.raises(ValueError, match="is larger than"):
        answers.steps(tmp_path / "runs", "a")
    (tmp_path / "other").write_bytes(b"")
    (tmp_path / "runs" / "b" / FILE).unlink()
    (tmp_path / "runs" / "b" / FILE).symlink_to(tmp_path / "other")
    assert answers.with_probes(tmp_path / "runs", ["a", "b"]) == ["a"]
