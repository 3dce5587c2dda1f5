"""llmtrain score."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from full_disk import no_file_over

import llmtrain
from llmtrain.cli import main
from llmtrain.commands.score import main as score


def write(path, rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


@pytest.mark.slow
def test_verdicts_a_line_each(tmp_path, capsys):
    rows = [{"response": f"\\boxed{{{i}}}", "ground_truth": "3"} for i in range(5)]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    assert score(["--verifier", "math", "--in", source, "--out", str(out), "--workers", "1"]) == 0
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [v["correct"] for v in verdicts] == [False, False, False, True, False]
    assert verdicts[3] == {"correct": True, "extracted": "3", "reason": "equal as text"}
    assert "5 judged, 1 correct (20.0%)" in capsys.readouterr().out


def test_a_function_of_the_user(tmp_path, capsys):
    rows = [{"response": r, "ground_truth": "a"} for r in ("a", "exit", "b")]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    assert score(["--verifier", "checks:check", "--in", source, "--out", str(out)]) == 0
    assert "3 judged, 1 correct (33.3%), 1 crash" in capsys.readouterr().out


def test_a_function_in_the_working_directory(tmp_path):
    (tmp_path / "vv.py").write_text("def judge(response, ground_truth):\n    return response == ground_truth\n")
    write(tmp_path / "in.jsonl", [{"response": "a", "ground_truth": "a"}])
    command = [sys.executable, "-P", "-m", "llmtrain", "score", "--verifier", "vv:judge", "--workers", "1"]
    done = subprocess.run(
        [*command, "--in", "in.jsonl", "--out", "out.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 judged, 1 correct" in done.stdout


BAD = [
    ("{", "not JSON"),
    ('{"response": "1", "ground_truth": ' + "[" * 100_000, "not JSON"),
    ("[1]", "expected an object with response and ground_truth, got list"),
    ({"ground_truth": "1"}, "field 'response' is missing"),
    ({"response": "1"}, "field 'ground_truth' is missing"),
    ({"response": 1, "ground_truth": "1"}, "field 'response' is int, not text"),
    ({"response": "1", "ground_truth": ""}, "field 'ground_truth' is empty"),
    ('{"response": "1", "ground_truth": NaN}', "field 'ground_truth' is missing"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_a_bad_line_is_named(tmp_path, capsys, row, message):
    source = write(tmp_path / "in.jsonl", [{"response": "1", "ground_truth": "1"}, "", row])
    args = ["score", "--verifier", "exact", "--in", source, "--out", str(tmp_path / "out.jsonl")]
    assert main(args) == 2
    assert f"{source}, line 3: {message}" in capsys.readouterr().err
    assert main([*args, "--skip-bad"]) == 0
    said = capsys.readouterr().out
    assert "1 judged, 1 correct (100.0%), 1 lines skipped" in said
    assert message in said


USABLE = [
    ("countdown", "3+5", {"numbers": [3, 5], "target": 8}, "8", "the ground truth of countdown is"),
    ("math", "1/2", "1/2", [{"a": 1}], "the ground truth of math is text or a number"),
    ("regex", "8", "[0-9]", "[0-9", "the ground truth of regex is a pattern"),
    ("python", "x = 1", "assert x == 1", {"x": 1}, "the ground truth of python is its unit tests"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("verifier", "response", "usable", "unusable", "message"), USABLE)
def test_a_ground_truth_the_verifier_cannot_use_is_a_bad_line(
    tmp_path, capsys, verifier, response, usable, unusable, message
):
    rows = [{"response": response, "ground_truth": truth} for truth in (usable, unusable, usable)]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "new" / "out.jsonl"
    args = ["score", "--verifier", verifier, "--in", source, "--out", str(out), "--workers", "1"]
    assert main(args) == 2
    assert f"{source}, line 2: field 'ground_truth': {message}" in capsys.readouterr().err
    assert not out.exists()
    assert main([*args, "--skip-bad"]) == 0
    assert f"{out}: 2 judged, 2 correct (100.0%), 1 lines skipped" in capsys.readouterr().out


def test_a_file_without_a_line_to_judge(tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    empty, bad = write(tmp_path / "empty.jsonl", [""]), write(tmp_path / "bad.jsonl", ["{}"])
    for source, said in ((empty, ""), (bad, f": {bad}, line 1: field 'response' is missing")):
        assert main(["score", "--verifier", "exact", "--in", source, "--out", str(out), "--skip-bad"]) == 2
        assert capsys.readouterr().err == f"error: {source} has no line to judge{said}\n"
    assert not out.exists()


def test_a_full_disk_takes_a_line(tmp_path, capsys):
    source, out = write(tmp_path / "in.jsonl", [{"response": "a", "ground_truth": "a"}] * 20), tmp_path / "out.jsonl"
    with no_file_over(500):
        assert main(["score", "--verifier", "exact", "--in", source, "--out", str(out)]) == 2
    assert capsys.readouterr().err.endswith(f"error: {out}: File too large\n")


def test_a_file_is_replaced_only_if_asked(tmp_path, capsys):
    source, out = write(tmp_path / "in.jsonl", [{"response": "a", "ground_truth": "a"}]), tmp_path / "out.jsonl"
    out.write_text("mine")
    args = ["score", "--verifier", "exact", "--in", source, "--out", str(out)]
    assert main(args) == 2
    assert capsys.readouterr().err.startswith(f"error: {out} exists: ")
    assert out.read_text() == "mine"
    assert main([*args, "--overwrite"]) == 0
    assert json.loads(out.read_text())["correct"]


def test_bad_arguments(tmp_path):
    source = write(tmp_path / "in.jsonl", [])
    for given, out, names in (("nowhere", "x", "nowhere"), (source, source, "the input itself")):
        with pytest.raises(ValueError, match=names):
            score(["--verifier", "exact", "--in", given, "--out", out])


HEAVY = ("math_verify", "math_answer", "math_equal", "math_reading", "same_tree")


def test_the_math_check_is_imported_by_workers_only():
    importers = []
    for file in Path(llmtrain.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = getattr(node, "module", None) or ""
            if any(part in n for n in [module, *names] for part in HEAVY):
                importers.append(file.name)
    assert set(importers) == {"math_answer.py", "math_equal.py", "rounding.py", "same_tree.py", "worked_out.py"}
