"""The script for a GPU that is there for minutes: its rehearsal on a CPU, what a cut leaves, and its page."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import contact_page, first_contact

ROOT = Path(__file__).parents[2]


def run(out, *arguments):
    command = [sys.executable, "-m", "benchmarks.first_contact", "--out", out, "--device", "cpu", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def read(out, name):
    return json.loads((out / f"{name}.json").read_text())


@pytest.mark.slow
def test_a_piece_alone(tmp_path):
    done = run(tmp_path, "--piece", "decode")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row["way"] for row in read(tmp_path, "decode")} == {"shared", "repeated"}


@pytest.mark.long
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
    measured = {row["name"] for row in read(tmp_path, "head")["results"] if "failed" not in row}
    assert measured >= {"dense torch", "fused"}
    assert set(read(tmp_path, "trl")["seconds_a_step"]) == {"llmtrain fp32", "trl fp32"}
    assert len(read(tmp_path, "study")["logs"]) == 2
    again = run(tmp_path, "--limit", "500")  # nothing is left to do
    assert (again.returncode, again.stdout) == (0, "")
    check_pages(tmp_path)


def check_pages(out):
    """Its measurements become a section of docs/scale.md and rows of docs/benchmarks.md, twice without a change."""
    docs = out / "docs"
    (docs / "data").mkdir(parents=True)
    for name in ("scale.md", "benchmarks.md", "data/benchmarks.json"):
        shutil.copy(ROOT / "docs" / name, docs / name)
    before, pages = (docs / "scale.md").read_text(), []
    for _ in range(2):
        command = [sys.executable, "-m", "benchmarks.contact_page", out, "--docs", docs]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        pages.append((docs / "scale.md").read_text())
    assert pages[0] == pages[1]
    text = pages[0].partition(f"{contact_page.HEADING}\n")[2].partition(f"\n{contact_page.BEFORE}\n")[0]
    assert pages[0].replace(f"{contact_page.HEADING}\n{text}\n", "") == before
    row = read(out, "decode")[0]
    assert f"| {row['model']} | {row['rows']} | shared | {row['ms_a_token']:.2f} |" in text
    took = read(out, "trl")["seconds_a_step"]
    assert f"{took['trl fp32'] / took['llmtrain fp32']:.2f} times as long" in text
    assert "N×D×V = 128×64×2,000" in (docs / "benchmarks.md").read_text()


def test_rows_of_the_head_are_added_to_those_of_an_earlier_machine():
    case = {"tokens": 8, "hidden": 4, "vocabulary": 16, "entropy": True, "live": 1.0, "device": "cuda", "threads": 0}
    result = {"forward": 1.0, "total": 2.0, "peak": 3, "logp_error": None, "gradient_error": None}
    old = [case | result | {"name": "fused"}, case | result | {"name": "dense torch"}]
    new = [
        case | result | {"name": "fused", "total": 1.5},
        case | {"name": "dense torch", "failed": "out of memory"},
        case | {"name": "stash", "failed": "out of memory"},
    ]
    runs = [{"machine": "H100", "torch": "2", "turns": 2, "results": old}]
    found = contact_page.merged(runs, runs[0] | {"results": new})
    told = {line["name"]: line.get("total", line.get("failed")) for line in found["results"]}
    assert told == {"fused": 1.5, "dense torch": 2.0, "stash": "out of memory"}
    assert found["note"] == "Measured later, by first_contact: fused."
    assert contact_page.merged(runs, runs[0] | {"machine": "H200"})["machine"] == "H200"


def test_what_a_gpu_would_tell_is_judged():
    rows = [
        {"model": "smol", "rows": 64, "way": "captured", "ms_a_token": x, "kernels_ms_a_token": 1.0} for x in (1.2, 2)
    ]
    rows = [row | {"responses_alike": 1.0} for row in rows]
    text = "\n".join(contact_page.decoding([*rows, {"model": "m", "rows": 1024, "way": "shared", "error": "no room"}]))
    assert "| 1.20, met |" in text
    assert "| 2.00, missed |" in text
    assert "| m | 1,024 | shared | no room | | | |" in text
    found = {
        "model": "m",
        "engine_gib": 30.0,
        "predicted_training_gib": 20.0,
        "measured": [{"memory/reserved_gib": 21.5}],
    }
    assert "20.0 GiB predicted for training, 21.5 reserved" in "".join(contact_page.ledger(found))


@pytest.mark.slow
def test_a_piece_that_takes_too_long_is_cut_and_tried_again(tmp_path):
    cut = run(tmp_path, "--call", "1", "--limit", "2.5")
    assert cut.returncode == 1
    assert re.match(r"decode: time is up: .*, \d+\.\d s", cut.stdout)
    assert read(tmp_path, "summary")["pieces"]["decode"]["ended"].startswith("time is up")


def test_its_page_names_its_files():
    page = (ROOT / "benchmarks/first_contact.md").read_text()
    for name in (*first_contact.PIECES, "summary"):
        assert f"`{name}" in page, name
