"""results.json, results.md and the figures of hand-made records."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from llmtrain.evaluation import report
from llmtrain.evaluation.correlations import Correlation
from llmtrain.evaluation.eval_progress import show
from llmtrain.evaluation.figures import draw
from llmtrain.evaluation.records import Answered, measure
from llmtrain.settings.sampling import Sampling


def record(source, n, right, seed=0):
    """Return a record of six questions with n responses each, right where `right(question, sample)` is True."""
    draws = np.random.default_rng(seed)
    answered = [
        Answered.of(
            [
                {
                    "response": f"so {draws.integers(9)}",
                    "extracted": str(i % 2),
                    "correct": bool(right(q, i)),
                    "reason": "",
                    "tokens": 3,
                    "finished": True,
                    "logp": -float(draws.random()),
                    "entropy": 1.0,
                }
                for i in range(n)
            ]
        )
        for q in range(6)
    ]
    sampling = Sampling(samples=n, top_p=0.7, max_new_tokens=4)
    return measure(source, sampling, answered, draws.random(6), ks=[2])


@pytest.fixture
def records():
    return [record("aime|24", 4, lambda q, i: i < q % 4), record("hard", 1, lambda q, i: False)]


def test_table_has_a_row_for_each_benchmark(records):
    text = report.markdown("Evaluation", records, [Correlation("", "avg@8", 5, -0.5)], ks=[2])
    assert all(len(line) < 200 for line in text.splitlines())  # as wide as a page
    row, other = {}, {}
    for grid in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)[:3]:
        headings, _, *cells = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in grid.splitlines()]
        row |= zip(headings, cells[0], strict=True)
        other |= zip(headings, cells[1], strict=True)
    assert row["benchmark"] == r"aime\|24"
    assert row["samples"] == "4, T 1, top-p 0.7"
    assert row["avg@n"].startswith(f"{records[0].avg.mean:.1%} [")
    assert row["pass@2"].startswith(f"{records[0].pass_at[2].mean:.1%} [")
    assert (other["pass@2"], other["Self-BLEU"], other["ratio"]) == ("–", "–", "–")
    assert "- hard: no response is right, so no AUROC." in text
    assert "| all | avg@8 | 5 | -0.50 |" in text
    assert r"| aime\|24 | 0.4 to 0.6 | 1 | 12 | " in text
    assert "0.8 to 1 |" not in text  # no question is so easy
    assert "nan" not in text


def test_without_k_it_has_those_of_all_samples(records):
    headings, rows = report.table(records)
    row = dict(zip(headings, rows[0], strict=True))
    assert row["pass@n"].startswith(f"{records[0].pass_at[4].mean:.1%} [")
    assert row["maj@n"].startswith(f"{records[0].maj_at[4].mean:.1%} [")


def test_how_it_was_sampled():
    plain, greedy = Sampling(max_new_tokens=4), Sampling(temperature=0, samples=8, max_new_tokens=4)
    said = [report.table([replace(record("a", 1, lambda q, i: True), sampling=x)])[1][0][2] for x in (plain, greedy)]
    assert said == ["1, T 1", "8, greedy"]


def test_json_is_strict_and_whole(records, tmp_path):
    report.write(tmp_path, {"model": "m"}, "Evaluation", records)
    found = json.loads((tmp_path / "results.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    first, second = found["benchmarks"]
    assert found["model"] == "m"
    assert first["avg"]["mean"] == pytest.approx(records[0].avg.mean)
    assert first["pass_at"]["4"]["low"] == pytest.approx(records[0].pass_at[4].low)
    assert first["sampling"]["top_p"] == 0.7
    assert len(first["difficulty"]) == 5
    assert second["calibration"]["auroc"] is None
    assert second["calibration"]["reason"] == "no response is right"


def test_figures_are_drawn_for_what_there_is(records, tmp_path):
    names = {path.name for path in draw(records, tmp_path)}
    assert names == {"pass_at_k.png", "logp.png", "prompt_entropy.png", "difficulty.png"}
    for name in names:
        assert imread(tmp_path / name).std() > 0.01
    (tmp_path / "one").mkdir()
    assert {path.name for path in draw(records[1:], tmp_path / "one")} == {"logp.png", "prompt_entropy.png"}


def test_terminal_shows_a_column_for_each_benchmark(records):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show(records, [2], console)
    text = console.export_text()
    assert "maj@2" in text
    assert "aime|24" in text
