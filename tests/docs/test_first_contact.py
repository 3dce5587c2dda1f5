"""The script for a GPU that is there for minutes: its rehearsal on a CPU, what a cut leaves, and its page."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import first_contact

ROOT = Path(__file__).parents[2]


def run(out, *arguments):
    command = [sys.executable, "-m", "benchmarks.first_contact", "--out", out, "--device", "cpu", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def read(out, name):
    return json.loads((out / f"{name}.json").read_text())


@pytest.mark.slow
def test_the_rehearsal_makes_every_piece(tmp_path):
    done = run(tmp_path, "--limit", "500")
    assert done.returncode == 0, done.stdout + done.stderr
    ended = read(tmp_path, "summary")["pieces"]
    print({name: piece["seconds"] for name, piece in ended.items()})
    assert {name: piece["ended"] for name, piece in ended.items()} == dict.fromkeys(first_contact.PIECES, "whole")
    rows = read(tmp_path, "decode")
    assert {row["way"] for row in rows} == {"shared", "repeated"}
    assert all(row["responses_alike"] == 1 for row in rows)
    assert read(tmp_path, "tests")["failed"] == []
    assert len(read(tmp_path, "ledger")["measured"]) == 3
    assert {row["label"] for row in read(tmp_path, "head") if isinstance(row["result"], dict)} >= {
        "dense torch",
        "fused",
    }
    assert set(read(tmp_path, "trl")["seconds_a_step"]) == {"llmtrain fp32", "trl fp32"}
    assert len(read(tmp_path, "study")["logs"]) == 2
    again = run(tmp_path, "--limit", "500")  # nothing is left to do
    assert (again.returncode, again.stdout) == (0, "")


def test_a_piece_that_takes_too_long_is_cut_and_tried_again(tmp_path):
    cut = run(tmp_path, "--call", "1", "--limit", "2.5")
    assert cut.returncode == 1
    assert re.match(r"decode: time is up: .*, \d+\.\d s", cut.stdout)
    assert read(tmp_path, "summary")["pieces"]["decode"]["ended"].startswith("time is up")


def test_its_page_names_its_files():
    page = (ROOT / "benchmarks/first_contact.md").read_text()
    for name in (*first_contact.PIECES, "summary"):
        assert f"`{name}" in page, name
