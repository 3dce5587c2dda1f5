"""`llmtrain diagnose`: facts, advice with its evidence, and settings to paste, for every kind of run."""

import json
from pathlib import Path

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
    for fact in ("at step 37", "starts at 0.6 nats", "a = 0.2", "no grip", "-0.2 nats from its target of 0.3"):
        assert fact in said
    assert "at its bound, 0.005." in said
    assert "llmtrain train --controller thermostat --set mode=bonus --set target=0.3" in said
    assert not [path for path in (tmp_path / "mine").iterdir() if path.suffix == ".png"]


def test_the_log_of_another_trainer(tmp_path, capsys):
    said = printed(capsys, verl_lines(tmp_path / "verl.jsonl"))
    for fact in ("verl's, 60 steps", "actor/entropy → entropy", "no reward is logged", "Hardly any token is clipped"):
        assert fact in said
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
    ("args", "names"),
    [
        ("nowhere", "nowhere is not a run"),
        (".", "config.yaml"),
        ("", "runs"),
        (". --target high", "'high'"),
        ("mine --target -1", "not -1"),
        ("x.jsonl --entropy typo", "'typo'; its metrics: entropy, reward"),
        ("x.jsonl x.jsonl --png x.png", "--png draws one run, not the 2"),
        ("train.jsonl", "data set, whose rows have question and answer"),
    ],
)
def test_bad_input_is_told_in_one_line(args, names, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    RunLog("mine", {}, seed=0).close()
    explosion(Path("x.jsonl"))
    Path("train.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    assert main(["diagnose", *args.split()]) != 0
    said = capsys.readouterr().err.strip()
    assert names in said
    assert "\n" not in said


def explosion(path, entropy="entropy"):
    lines = [{"step": s, entropy: 0.5 if s < 20 else 9.0, "reward": 0.5 if s < 40 else 0.0} for s in STEPS.tolist()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_it_begins_with_what_happened_and_a_picture(tmp_path, capsys):
    assert main(["diagnose", str(explosion(tmp_path / "x.jsonl")), "--png", str(tmp_path / "drawn")]) == 0
    said = capsys.readouterr().out
    assert "In short\n  Entropy starts at 0.5 nats and exploded from step 20 (up to 9 nats)" in said
    assert "▲ exploded 20, reward dead 40" in said
    assert said.endswith(f"figure: {tmp_path / 'drawn.png'}\n")
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")


def test_a_column_can_be_named(tmp_path, capsys):
    path = explosion(tmp_path / "x.jsonl", "mine/entropy")
    assert "is “mine/entropy” it? --entropy mine/entropy" in printed(capsys, path)
    assert "exploded from step 20" in printed(capsys, path, "--entropy", "mine/entropy")


def test_an_entropy_in_bits_is_read_in_nats(tmp_path, capsys):
    path = explosion(tmp_path / "x.jsonl", "mine/entropy_bits")
    said = printed(capsys, path, "--entropy", "mine/entropy_bits")
    assert "mine/entropy_bits is in bits by its name: its values are times 0.693, in nats" in said
    assert "Entropy starts at 0.347 nats and exploded from step 20 (up to 6.24 nats)" in said


def test_a_named_entropy_is_not_filled_with_another(tmp_path, capsys):
    """The log has an entropy at each step, and the named one at every second."""
    lines = [
        {"step": s, "entropy": 9.0, "reward": 0.5} | ({"mine/entropy": 0.5} if s % 2 else {}) for s in STEPS.tolist()
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = printed(capsys, tmp_path / "x.jsonl", "--entropy", "mine/entropy")
    assert "over the last third its mean is 0.5 (0.5 to 0.5)" in said


def test_of_ten_unknown_entropies_the_number_is_told(tmp_path, capsys):
    line = {f"source {n}/entropy": 0.5 for n in range(10)}
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"step": s, **line}) + "\n" for s in STEPS.tolist()))
    said = printed(capsys, tmp_path / "x.jsonl")
    assert "or “source 2/entropy” or one of 7 others it? --entropy 'source 0/entropy'" in said
