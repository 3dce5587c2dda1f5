"""`toybandit forecast` on logs of other trainers, and `llmtrain diagnose`, which shows what it wrote."""

import json
from pathlib import Path

import pytest

from entrostat.about.lineup import asked
from entrostat.logs.forecast import beside, told
from entrostat.logs.runlog import RunLog
from llmtrain.cli import main as llmtrain
from toybandit import Config
from toybandit.cli import main
from toybandit.forecast.command import ForecastFlags, read
from toybandit.forecast.observed import observe
from toybandit.forecast.outlook import of_entry

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
    assert [rule["rule"] for rule in made["rules"]] == ["grpo", "clip_higher", "thermostat (target=0.5x)"]
    plain, _, held = made["rules"]
    assert plain["pass"][1:] == [0, 0]
    assert held["pass"][1] == pytest.approx(held["pass"][0] - plain["pass"][0], abs=2e-4)

    assert llmtrain(["diagnose", str(trl)]) == 0
    assert "Forecast, which is no evidence: from 12 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("controller", "word"), [("entropic", "trained under 'entropic'"), ("grpo", "the log has no entropy")]
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
    beside(tmp_path).write_text(json.dumps({**made, "like": False}))
    assert "no rule's pass@8 is told apart" in told(tmp_path)  # in environments that are unlike the run
    beside(tmp_path).write_text(json.dumps({**made, "rules": rules[:1]}))
    assert "no rule's pass@8 is told apart" in told(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "null", "{}", '{"k": 8, "rules": []}', '{"k": 8, "steps": 1, "total": 2, "rules": [{}], "notes": []}'],
)
def test_a_file_in_its_place_is_named_and_kept(
    tmp_path: Path, trl: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    beside(trl).write_text(text)
    assert told(trl) == f"{beside(trl)} is no forecast of toybandit forecast: move it away"
    assert main(["forecast", "--like", str(trl), *QUICK]) == 2
    assert "move it away" in capsys.readouterr().err
    assert beside(trl).read_text() == text
    assert llmtrain(["diagnose", str(trl)]) == 0


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--like"], "a run folder or a log"),
        (["--like", "LOG", "LOG"], "a run twice"),
        (["--like", "LOG", "--json", "none/x.json"], "a folder that exists"),
        (["--like", "LOG", "--run", "a"], "holds 1 runs: name one"),
        (["--like", "LOG", "--evaluation", "math"], "no evaluation of 'math'; it has none by name"),
        (["--like", "LOG", "--total", "4"], "--total 4 is less than the 12 steps"),
    ],
)
def test_flags_that_do_not_go_together(
    trl: Path, flags: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forecast", *(str(trl) if flag == "LOG" else flag for flag in flags)]) == 2
    assert word in capsys.readouterr().err


def test_a_log_of_two_runs_is_not_averaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"step": i, "entropy": 1 - i / 20, "reward": 0.2, "run": run} for run in ("a", "b") for i in range(12)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["forecast", "--like", str(tmp_path / "log.jsonl")]) == 2
    assert "holds 2 runs: name one with --run: a, b" in capsys.readouterr().err


def test_evaluations_on_several_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"step": i, "entropy": 1 - i / 20, "reward": 0.2 + i / 100} for i in range(12)]
    lines[0] |= {
        f"eval/{name}/{kind}@8": x
        for name, kind, x in (("aime", "pass", 0.1), ("math", "pass", 0.6), ("math", "avg", 0.2))
    }
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, lines)))
    assert main(["forecast", "--like", str(log)]) == 2
    assert "evaluations of aime, math: name one with --evaluation" in capsys.readouterr().err
    (metrics,) = read(ForecastFlags(like=(log,), evaluation="math"))
    assert observe(metrics).passed.tolist() == [0.6]
    assert observe(metrics).mean.tolist() == [0.2]


def test_a_target_beyond_the_environment_is_refused() -> None:
    with pytest.raises(ValueError, match=r"thermostat \(target=50\): the target exceeds 1.386 nats"):
        of_entry(asked(["thermostat target=50"])[0], Config(env="features"), None)
