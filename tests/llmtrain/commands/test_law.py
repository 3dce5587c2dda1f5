"""`llmtrain law`: table, figure, numbers, warnings."""

import json

import numpy as np
import pytest
from full_disk import no_file_over

from entrostat.logs.runlog import RunLog
from llmtrain.commands.law import main as law

STEPS = np.arange(60)
FALLING = 0.1 + 1.4 * np.exp(-STEPS / 20)


@pytest.fixture
def run(tmp_path):
    """Write a run with exactly R = 0.9 − 0.2·e^H, and an evaluation of half that every tenth step."""
    log = RunLog(tmp_path / "mine", {"target": None}, seed=0)
    for step, (h, r) in enumerate(zip(FALLING, 0.9 - 0.2 * np.exp(FALLING), strict=True)):
        log.log(step, {"entropy": h, "reward": r} | ({"eval/pass@1": r / 2} if step % 10 == 0 else {}))
    log.close()
    return tmp_path / "mine"


def test_table_figure_and_numbers(run, tmp_path, capsys):
    assert law([str(run), "--json", str(tmp_path / "new" / "n.json")]) == 0
    said = capsys.readouterr()
    for shown in ("60", "0.200", "0.900", "0.700", "[0.700, 0.700]", "1.000", "9 points"):
        assert shown in said.out
    assert said.err == ""
    assert (run / "law.png").stat().st_size > 10_000
    (numbers,) = json.loads((tmp_path / "new" / "n.json").read_text())
    assert (numbers["run"], numbers["against"], numbers["n"], numbers["warnings"]) == ("mine", "reward", 60, [])
    assert (numbers["a"], numbers["b"], numbers["ceiling"]) == pytest.approx((0.2, 0.9, 0.7))
    end = 0.9 - 0.2 * np.exp(FALLING[-1])
    assert (numbers["prediction"]["end"], numbers["prediction"]["measured_end"]) == pytest.approx((end, end))
    assert set(numbers["alternatives"]) == {"exponential", "linear", "quadratic"}


def test_another_metric_and_several_runs_in_one_figure(run, tmp_path, capsys):
    out = tmp_path / "new" / "two.svg"
    assert law([str(run), str(run), "--against", "eval/pass@1", "--share", "0.7", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "0.100" in said.out  # a of half the reward
    assert said.err.count("warning: mine: There are only 6 points") == 2
    drawn = out.read_text()
    assert drawn.count('<g id="axes_') == 4  # a panel and a bar of steps each
    assert not (run / "law.png").exists()


def test_a_figure_without_an_ending_is_named_as_it_is_written(run, tmp_path, capsys):
    assert law([str(run), "--against", "eval/pass@1", "--out", str(tmp_path / "two")]) == 0
    assert capsys.readouterr().out.endswith(f"figure: {tmp_path / 'two.png'}\n")
    assert (tmp_path / "two.png").is_file()


def test_numbers_that_are_not_finite_are_null(tmp_path, capsys):
    log = RunLog(tmp_path / "flat", {}, seed=0)
    for step, h in enumerate(FALLING):
        log.log(step, {"entropy": h, "reward": 0.5})
    log.close()
    assert law([str(tmp_path / "flat"), "--json", str(tmp_path / "n.json")]) == 0
    assert json.loads((tmp_path / "n.json").read_text())[0]["r2"] is None
    assert "nothing of the variance of reward" in capsys.readouterr().err


def test_a_full_disk_names_what_was_written(run):
    with no_file_over(1000), pytest.raises(OSError, match="File too large") as told:
        law([str(run)])
    assert told.value.filename == str(run / "law.png")


def test_not_a_run(tmp_path):
    with pytest.raises(ValueError, match=r"is not a run: it has no config\.yaml"):
        law([str(tmp_path)])


def test_the_log_of_another_trainer(tmp_path, capsys):
    """Two runs in one file give one figure beside it, and a list of names."""
    lines = ["Step,a - actor/entropy,b - actor/entropy,a - critic/score/mean,b - critic/score/mean,a - mine,b - mine"]
    lines += [
        f"{s},{h},{h},{0.9 - 0.2 * np.exp(h)},{0.5 - 0.1 * np.exp(h)},1,1" for s, h in zip(STEPS, FALLING, strict=True)
    ]
    (tmp_path / "chart.csv").write_text("\n".join(lines))
    assert law([str(tmp_path / "chart.csv"), "--json", str(tmp_path / "n.json")]) == 0
    said = capsys.readouterr().out
    assert "b: CSV, 60 steps; renamed: actor/entropy → entropy, critic/score/mean → reward" in said
    assert "kept under their own names: mine" in said
    assert f"figure: {tmp_path / 'chart.csv'}.law.png" in said
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert [one["run"] for one in numbers] == ["a", "b"]
    assert [one["a"] for one in numbers] == pytest.approx([0.2, 0.1])
    (tmp_path / "lines.jsonl").write_text('{"step": 1, "data": {"critic/score/mean": 0.5}}\n')
    with pytest.raises(ValueError, match=r"lines .*'entropy' .*--actor\.entropy_coef 0"):
        law([str(tmp_path / "lines.jsonl")])


def test_another_metric_as_the_entropy(tmp_path, capsys):
    """The law of the named entropy, in bits, is that of its values in nats."""
    rows = zip(STEPS.tolist(), FALLING.tolist(), strict=True)
    lines = [
        {"step": s, "entropy": 1.0 + s / 100, "ent/bits": h / np.log(2), "reward": 0.9 - 0.2 * np.exp(h)}
        for s, h in rows
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert law([str(path), "--entropy", "ent/bits", "--json", str(tmp_path / "n.json")]) == 0
    (numbers,) = json.loads((tmp_path / "n.json").read_text())
    assert (numbers["a"], numbers["b"]) == pytest.approx((0.2, 0.9))
    assert "ent/bits is in bits by its name" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(ValueError, match="has logged no 'typo'; its metrics: ent/bits, entropy, reward"):
        law([str(path), "--entropy", "typo"])
