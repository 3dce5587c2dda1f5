"""`llmtrain bench kernels`: measurements are right where the truth is known, and the page shows the numbers."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from llmtrain.commands.bench import main as bench
from llmtrain.kernels.peers import CPU_PEERS, PEERS
from llmtrain.kernels.timing import CPU_SHAPES, Case, Result, cases, inputs, machine, measure, read, report, rows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
SHAPE = (1024, 4, 32_768)
DENSE_BYTES = 1024 * 32_768 * 4
"""Logits of all tokens in fp32."""


@pytest.fixture(scope="module")
def results():
    given = (("dense torch", 1), ("fused", 1), ("recompute", -1))
    return list(measure([Case(name, *SHAPE, threads=threads) for name, threads in given], 1))


def test_memory_and_errors(results):
    dense, fused = (result for _, result in results[:2])
    assert dense.peak > 3 * DENSE_BYTES  # log p, p and their product at once
    assert fused.peak < dense.peak / 2
    for result in (dense, fused):
        assert result.total > 0
        assert 0 < result.logp_error < 1e-5
        assert 0 < result.gradient_error < 1e-4


def test_a_case_that_fails_says_why_and_the_others_go_on(results):
    assert results[2][1] == "set_num_threads expects a positive integer"
    [(shape, lines)] = rows(results)
    assert shape == "1,024×4×32,768"
    assert [line[0] for line in lines] == ["dense torch", "fused", "recompute"]
    assert (lines[0][3], lines[0][5], lines[2][1]) == ("1.00", "1.000", results[2][1])


def test_json_and_back(results):
    assert read(json.loads(json.dumps(report(results, "here", 1)))) == results


@pytest.mark.skipif(importlib.util.find_spec("cut_cross_entropy") is not None, reason="it is installed")
def test_a_library_that_is_not_installed():
    [(_, result)] = measure([Case("Cut Cross-Entropy", 8, 4, 16, entropy=False)], 1)
    assert result == "not installed"


@pytest.mark.parametrize("vocabulary", [1000, 32_768])
def test_inputs_are_as_peaked_as_a_reasoning_model(vocabulary):
    from llmtrain.kernels import head_stats

    hidden, weight, targets, plan = inputs(Case("fused", 256, 512, vocabulary, live=0.2))
    assert 0.1 < head_stats(hidden, weight, targets).entropy.mean() < 1.0
    assert 0.1 < (plan.advantage != 0).float().mean() < 0.3


def test_cases():
    found = cases("cpu", threads=1)
    assert {case.name for case in found} == set(CPU_PEERS)
    assert {(case.tokens, case.hidden, case.vocabulary) for case in found} == set(CPU_SHAPES)
    assert {case.name for case in cases("cuda")} == set(PEERS)
    assert not any(case.entropy for case in found if case.live < 1)  # a bonus would keep every token alive


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ("speed", "unknown benchmark 'speed'; choose from kernels"),
        ("kernels --turns 0", "--turns must be at least 1"),
        ("kernels --device cpu --vocabulary 5", "vocabulary 5"),
        pytest.param("kernels --device cuda", "llmtrain doctor cuda", marks=NO_GPU),
    ],
)
def test_bad_arguments(args, names):
    with pytest.raises(ValueError, match=names):
        bench(args.split())


def test_the_bare_command_names_its_benchmarks(capsys):
    assert bench([]) == 0
    assert "usage: llmtrain bench NAME" in (printed := capsys.readouterr().out)
    assert "kernels" in printed


def script(name="fused_head"):
    spec = importlib.util.spec_from_file_location(f"{name}_script", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_of_the_numbers():
    """Rewritten by: python benchmarks/fused_head.py page, python benchmarks/trainer.py --page"""
    found = json.loads((ROOT / "docs" / "data" / "benchmarks.json").read_text())
    kernels, heading, trainer = (ROOT / "docs" / "benchmarks.md").read_text().partition("\n## Training against TRL")
    assert kernels == script().page(found)
    assert heading[1:] + trainer == script("trainer").sections(found["trainer"])


def test_the_page_says_what_was_missed_and_what_was_not_measured():
    shape = CPU_SHAPES[1]
    found = [
        (Case("dense torch", *shape), Result(1.0, 100.0, 800, 0.0, 0.0)),
        (Case("fused", *shape), Result(1.0, 95.0, 80, 0.0, 0.0)),
        (Case("Liger fused linear PPO", *shape, entropy=False), "not installed"),
    ]
    page = script().page({"kernels": [report(found, machine("cpu", 1), 3)]})
    assert "- total, target ≤ 0.9 of dense: **0.950**, missed." in page
    assert "- peak, target ≤ 0.125 of dense: **0.100**, met." in page
    assert "| Liger fused linear PPO, no entropy | not installed |" in page
    assert page.count("Not measured.") == 3  # CUDA, the training step and sweeps


@pytest.mark.long
def test_a_training_step_with_either_head():
    command = [sys.executable, str(ROOT / "benchmarks" / "fused_head.py"), "step", "--steps", "1", "--dry"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT, check=True)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "| " in line]
    found = {row[0]: [float(cell) for cell in row[1:4]] for row in rows[-2:]}
    assert set(found) == {"dense", "fused"}
    for step, rollout, head in found.values():
        assert 0 < head < step - rollout < step


@pytest.mark.long
def test_training_beside_trl(small):
    """Both trainers take turns on the same prompts, timed one at a time; their responses are similar."""
    pytest.importorskip("trl")
    command = [sys.executable, str(ROOT / "benchmarks" / "trainer.py"), "--rounds", "3", "--warm-up", "1", "--dry"]
    command += ["--threads", "1", "--model", small.model.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT, check=True)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "| " in line]
    ours, theirs = ([float(cell) for cell in row[2:]] for row in rows if row[0].startswith(("llmtrain", "TRL")))
    assert ours[0] > 0
    assert theirs[0] > 0
    assert ours[2] == pytest.approx(theirs[2], rel=0.1)  # tokens a response
    assert ours[4] == pytest.approx(theirs[4], rel=0.1)  # entropy
    shares = re.findall(r"(\w+) (\d+)%", next(x for x in done.stdout.splitlines() if x.startswith("llmtrain's time")))
    assert {name for name, _ in shares} >= {
        "rollout",
        "verify",
    }  # no group may have a signal, and then nothing is trained
    assert 95 <= sum(int(share) for _, share in shares) <= 105  # rounded, and those below half a percent left out
