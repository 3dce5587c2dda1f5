"""`llmtrain diagnose`: facts, advice with its evidence, and settings to paste, for every kind of run."""

import json

import numpy as np
import pytest

from entrostat.logs.diagnosis import evidence
from entrostat.logs.runlog import RunLog
from llmtrain.cli import main

STEPS = np.arange(60)
ENTROPY = np.where(STEPS < 37, 0.6, 0.1)
TITLES = (
    "Collapse",
    "Off-policyness and clipping",
    "Does entropy predict reward?",
    "Does a controller have grip?",
    "Breadth (pass@k)",
    "What to try",
)


def printed(capsys, *args):
    """Return what the command prints, its lines joined where they were wrapped."""
    assert main(["diagnose", *map(str, args)]) == 0
    return " ".join(capsys.readouterr().out.split())


def verl_lines(path):
    rows = zip(STEPS.tolist(), ENTROPY.tolist(), strict=True)
    lines = [{"step": s, "data": {"actor/entropy": h, "actor/pg_clipfrac": 0.0}} for s, h in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_run_of_the_trainer_with_a_controller(tmp_path, capsys):
    settings = {"controller": "adaptive_entropy", "controller_args": {"target": 0.3}}
    log = RunLog(tmp_path / "mine", settings, seed=0)
    for step, h in zip(STEPS.tolist(), ENTROPY, strict=True):
        log.log(step, {"entropy": h, "reward": 0.9 - 0.2 * np.exp(h), "adaptive_entropy/coef": 0.005})
    log.close()
    said = printed(capsys, tmp_path / "mine")
    assert [said.index(title) for title in TITLES] == sorted(said.index(title) for title in TITLES)
    assert "Collapsed at step 37. The entropy starts at 0.6 nats" in said
    assert "a = 0.2 (95% interval 0.2 to 0.2)" in said
    assert (
        "The controller has no grip: over the last third the mean entropy is -0.2 nats from its target of 0.3" in said
    )
    assert "adaptive_entropy/coef over the last third: at its bound, 0.005." in said
    assert "llmtrain train --controller thermostat --set mode=bonus --set target=0.3" in said
    assert not [path for path in (tmp_path / "mine").iterdir() if path.suffix == ".png"]


def test_the_log_of_another_trainer(tmp_path, capsys):
    said = printed(capsys, verl_lines(tmp_path / "verl.jsonl"))
    assert "imported: lines of JSON, as verl's, 60 steps; renamed: actor/entropy → entropy" in said
    assert "Cannot be told: no reward is logged." in said
    assert "Hardly any token is clipped from above" in said
    assert "The log names no target" in said
    assert "actor_rollout_ref.actor.policy_loss.loss_mode=entrostat/kl_ref" in said
    for line in evidence.paid("kl_ref", "beta").lines:
        assert line in said
    held = printed(capsys, tmp_path / "verl.jsonl", "--target", "0.1")
    assert "The controller has grip" in held
    assert "Leave the controller as it is" in held
    assert "EntrostatGRPOTrainer" not in held


def test_a_run_of_the_simulator(tmp_path, capsys):
    from toybandit.cli import main as toybandit

    flags = "run --env det --controller grpo --states 4 --rollouts 200 --lr 2 --passes 1 --seeds 2 --out"
    assert toybandit([*flags.split(), str(tmp_path / "toy")]) == 0
    capsys.readouterr()
    said = printed(capsys, tmp_path / "toy")
    assert "Collapsed at step" in said
    assert "Controller: " in said


def test_lines_are_narrow_but_for_settings(tmp_path, capsys):
    main(["diagnose", str(verl_lines(tmp_path / "verl.jsonl"))])
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("Collapse")
    assert all(len(line) <= 100 for line in lines[start:] if not line.startswith("      "))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere"], "nowhere is not a run: there is no such file or folder"),
        (["."], "is not a run: it has no config.yaml"),
        ([], "the following arguments are required: runs"),
        ([".", "--target", "high"], "invalid float value: 'high'"),
        (["mine", "--target", "-1"], "a target is an entropy in nats, 0 or more, not -1"),
    ],
)
def test_bad_input_is_told_in_one_line(args, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    RunLog("mine", {}, seed=0).close()
    assert main(["diagnose", *args]) != 0
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said


def explosion(path, entropy="entropy"):
    lines = [{"step": s, entropy: 0.5 if s < 20 else 9.0, "reward": 0.5 if s < 40 else 0.0} for s in STEPS.tolist()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_it_begins_with_what_happened_and_a_picture(tmp_path, capsys):
    assert main(["diagnose", str(explosion(tmp_path / "x.jsonl")), "--png", str(tmp_path / "drawn")]) == 0
    said = capsys.readouterr().out
    assert "In short\n  Entropy starts at 0.5 nats and exploded from step 20 (up to 9 nats); the reward is dead" in said
    assert "▲ exploded 20, reward dead 40" in said
    assert said.endswith(f"figure: {tmp_path / 'drawn.png'}\n")
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")


def test_a_column_can_be_named(tmp_path, capsys):
    path = explosion(tmp_path / "x.jsonl", "mine/entropy")
    assert "is “mine/entropy” it? --entropy mine/entropy" in printed(capsys, path)
    assert "exploded from step 20" in printed(capsys, path, "--entropy", "mine/entropy")
    assert main(["diagnose", str(path), "--entropy", "typo"]) == 2
    assert "x has logged no 'typo'; its metrics: mine/entropy, reward" in capsys.readouterr().err


def test_one_picture_is_of_one_run(tmp_path, capsys):
    path = explosion(tmp_path / "x.jsonl")
    assert main(["diagnose", str(path), str(path), "--png", "x.png"]) == 2
    assert "--png draws one run, not the 2 that are given" in capsys.readouterr().err


def test_a_data_set_is_no_log(tmp_path, capsys):
    (tmp_path / "train.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    assert main(["diagnose", str(tmp_path / "train.jsonl")]) == 2
    assert "is a data set, whose rows have question and answer, and not the log of a run" in capsys.readouterr().err
