"""`toybandit forecast` on logs of other trainers, and `llmtrain diagnose`, which shows what it wrote."""

import json
from pathlib import Path

import pytest

from entrostat.logs.forecast import beside, told
from entrostat.logs.runlog import RunLog
from llmtrain.cli import main as llmtrain
from toybandit.cli import main

QUICK = ["--tries", "10", "--fits", "2", "--seeds", "2", "--rules", "clip_higher", "thermostat target=0.5x"]


@pytest.fixture
def trl(tmp_path: Path) -> Path:
    """The state of a TRL run whose entropy falls."""
    history = [{"step": i, "entropy": 1.2 * 0.8**i, "reward": 0.2 + 0.02 * i, "loss": 0.0} for i in range(1, 13)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"global_step": 12, "log_history": history}))
    return tmp_path / "trainer_state.json"


@pytest.mark.slow
def test_the_log_of_a_trl_run(trl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", "--like", str(trl), "--total", "24", *QUICK]) == 0
    said = capsys.readouterr().out
    assert "thermostat" in said
    assert "read: 12 of 24 steps, entropy 0." in said
    assert "without evaluations" in said
    made = json.loads(beside(trl).read_text())
    assert [rule["rule"] for rule in made["rules"]] == ["ppo", "clip_higher", "thermostat (target=0.5x)"]
    plain, _, held = made["rules"]
    assert plain["pass"][1:] == [0, 0]
    assert held["pass"][1] == pytest.approx(held["pass"][0] - plain["pass"][0], abs=2e-4)

    assert llmtrain(["diagnose", str(trl)]) == 0
    assert "Forecast, which is no evidence: from 12 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("controller", "word"), [("entropic", "trained under 'entropic'"), ("grpo", "an entropy at 0 steps")]
)
def test_runs_of_one_s_own(tmp_path: Path, controller: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    RunLog(tmp_path / "run", {"controller": controller}, seed=0).close()
    assert main(["forecast", "--like", str(tmp_path / "run"), *QUICK]) == 2
    assert word in capsys.readouterr().err


def test_names_that_a_log_has_not(trl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", "--like", str(trl), "--reward", "accuracy", *QUICK]) == 2
    assert "has logged no 'accuracy'; its metrics: entropy, loss, reward" in capsys.readouterr().err


def test_what_is_shown_of_a_forecast(tmp_path: Path) -> None:
    assert told(tmp_path) == ""
    rules = [
        {"rule": name, "entropy": 0.1, "reward": [0.3, -0.01, 0.02], "pass": [0.5, gain, 0.05]}
        for name, gain in (("ppo", 0.0), ("kl_ref", 0.08), ("edge", 0.04), ("papo", 0.1))
    ]
    made = {"k": 8, "steps": 60, "total": 480, "rules": rules, "notes": ["past: …"]}
    beside(tmp_path).write_text(json.dumps(made))
    lines = told(tmp_path).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["papo", "kl_ref", "past"]
    beside(tmp_path).write_text(json.dumps({**made, "rules": rules[:1]}))
    assert "no rule's pass@8 is told apart" in told(tmp_path)
