"""The command line: what it writes, and how it fails."""

import json
import re
import resource
import subprocess
import sys

import numpy as np
import pytest
import yaml

from entrostat.logs.runlog import read_metrics
from toybandit import Config, simulate
from toybandit.cli import main
from toybandit.run import cost_of_control

SMALL = ["--states", "4", "--rollouts", "6", "--seeds", "3"]


def test_run_writes_a_run_log(tmp_path, capsys):
    out = tmp_path / "x"
    flags = ["--controller", "entropic", "--target", "0.6", "--set", "tau=0", "--set", "ki=5e-2", "--first-seed", "4"]
    assert main(["run", "--env", "noisy", *flags, *SMALL, "--out", str(out)]) == 0
    line, head, *rows, cost = capsys.readouterr().out.splitlines()
    assert "entropic in noisy" in line
    assert str(out) in line
    assert head.split("  ")[-2:] == ["final entropy (nats)", "reward, last fifth"]
    assert [row.split()[0] for row in rows] == ["entropic", "grpo"]
    assert "of reward (3 seeds)" in cost
    saved = yaml.safe_load((out / "config.yaml").read_text())
    assert saved.pop("seeds") == [4, 5, 6]
    trajectory = simulate(Config(**saved), [4, 5, 6])
    assert trajectory.config.controller_args == {"tau": 0, "ki": 0.05}
    rows = read_metrics(out)
    assert list(rows[0]) == ["step", "entropy", "reward", "entropic/integral", "entropic/alpha"]
    assert [row["step"] for row in rows] == list(range(6))
    np.testing.assert_allclose([row["entropy"] for row in rows], trajectory.entropy[:, :-1].mean(0), rtol=1e-14)
    np.testing.assert_allclose([row["reward"] for row in rows], trajectory.reward.mean(0), rtol=1e-14)
    with np.load(out / "trajectory.npz") as arrays:
        assert np.array_equal(arrays["entropy"], trajectory.entropy)
    assert json.loads((out / "manifest.json").read_text())["seed"] == 4
    assert (out / "entropy.png").read_bytes().startswith(b"\x89PNG")


def printed(capsys, *flags):
    assert main(["run", *SMALL, "--overwrite", *flags]) == 0
    return capsys.readouterr().out.splitlines()[1:]


def test_grpo_is_simulated_beside_a_controller(tmp_path, capsys):
    """The printed numbers from the two simulations; the files are those of the controller alone."""
    beside, alone = tmp_path / "beside", tmp_path / "alone"
    flags = ["--controller", "entropy_bonus", "--set", "coef=0.5", "--rollouts", "10"]
    _, ours, grpo, cost = printed(capsys, *flags, "--out", str(beside))
    args = {"states": 4, "rollouts": 10}
    runs = [
        simulate(Config(controller="entropy_bonus", controller_args={"coef": 0.5}, **args), range(3)),
        simulate(Config(**args), range(3)),
    ]
    for line, run in zip((ours, grpo), runs, strict=True):
        late = run.reward[:, -2:].mean(1)
        error = late.std(ddof=1) / 3**0.5
        assert f"{run.entropy[:, -1].mean():.3f} ± " in line
        assert line.endswith(f"{late.mean():.3f} ± {error:.3f}")
    lost = (runs[1].reward - runs[0].reward)[:, -2:].mean(1)
    assert f"{lost.mean():.4f} ± {lost.std(ddof=1) / 3**0.5:.4f} of reward (3 seeds)" in cost
    assert printed(capsys, *flags, "--no-beside", "--out", str(alone)) == []
    assert sorted(path.name for path in beside.iterdir()) == sorted(path.name for path in alone.iterdir())
    assert (beside / "metrics.jsonl").read_text().splitlines() == (alone / "metrics.jsonl").read_text().splitlines()
    assert (beside / "entropy.png").read_bytes() != (alone / "entropy.png").read_bytes()


@pytest.mark.parametrize("name", ["grpo", "ppo"])
def test_grpo_is_not_compared_with_itself(name, tmp_path, capsys):
    assert printed(capsys, "--controller", name, "--out", str(tmp_path)) == []


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ([0.02, 0.03, 0.04], "control cost 0.0300 ± 0.0058 of reward (3 seeds)"),
        ([-0.02, -0.03, -0.04], "control gained 0.0300 ± 0.0058 of reward (3 seeds)"),
        ([0.02, -0.03, 0.04], "no measurable cost of control: +0.0100 ± 0.0208 of reward (3 seeds)"),
        ([0.0, 0.0], "no measurable cost of control: +0.0000 ± 0.0000 of reward (2 seeds)"),
        ([0.02], "control cost 0.0200 of reward (one seed, so no error is known)"),
    ],
)
def test_cost_of_control(lost, said):
    assert cost_of_control(np.array(lost)) == said


def test_grpo_that_diverges_costs_the_comparison_alone(tmp_path, capsys, monkeypatch):
    """As if its step were too large: the controller's own run is written."""
    monkeypatch.setattr("toybandit.run.uncontrolled", lambda config: Config(update="adam", lr=5e307, rollouts=6))
    said = printed(capsys, "--controller", "entropy_bonus", "--out", str(tmp_path))
    assert said == ["grpo with the same seeds: logits are not finite after rollout 1: lower lr"]
    assert (tmp_path / "entropy.png").exists()


def test_label_noise_on_the_command_line(tmp_path, capsys):
    printed(capsys, "--label-noise", "0.2", "--out", str(tmp_path))
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["label_noise"] == 0.2
    for row in read_metrics(tmp_path):
        assert row["reward_seen"] == pytest.approx(0.6 * row["reward"] + 0.2)
    with np.load(tmp_path / "trajectory.npz") as arrays:
        np.testing.assert_allclose(arrays["reward_seen"], 0.6 * arrays["reward"] + 0.2)


def test_a_run_is_not_written_over_unless_told(tmp_path, capsys):
    command = ["run", *SMALL, "--out", str(tmp_path)]
    assert main(command) == 0
    assert main(command) == 2
    assert "holds a run: choose another --out, or pass --overwrite" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0


HOLDER = """
import sys, time
from entrostat.settings.out_folder import lock_folder
with lock_folder(sys.argv[1]):
    print("held", flush=True)
    time.sleep(300)
"""


def test_a_folder_that_another_process_writes_to_is_left_alone(tmp_path, capsys):
    command = ["run", *SMALL, "--out", str(tmp_path), "--overwrite"]
    assert main(command) == 0
    before = (tmp_path / "metrics.jsonl").stat().st_mtime_ns
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        assert main(command) == 2
    finally:
        holder.kill()
        holder.communicate()
    assert capsys.readouterr().err == f"error: another process writes in {tmp_path}\n"
    assert (tmp_path / "metrics.jsonl").stat().st_mtime_ns == before


def test_a_training_with_checkpoints_is_not_written_over(tmp_path, capsys):
    (tmp_path / "checkpoints").mkdir()
    assert main(["run", *SMALL, "--out", str(tmp_path), "--overwrite"]) == 2
    assert "holds a training with checkpoints, which is never overwritten" in capsys.readouterr().err


def test_a_run_that_diverges_later_says_when(tmp_path, capsys):
    flags = ["--update", "adam", "--passes", "1", "--lr", "5e307", "--out", str(tmp_path)]
    assert main(["run", *SMALL, *flags]) == 2
    assert capsys.readouterr().err == "error: logits are not finite after rollout 2: lower lr\n"
    assert [row["step"] for row in read_metrics(tmp_path)] == [0, 1]
    assert not (tmp_path / "trajectory.npz").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["run", "--env", "nosy"], "unknown env 'nosy'; did you mean noisy?"),
        (
            ["run", "--controller", "xyzzy"],
            "unknown controller 'xyzzy'; choose from adapo, adaptive_clip, ",
        ),
        (["run", "--target", "0.5"], "controller 'grpo' has no target; those with one are"),
        (["run", "--set", "kp=1"], "has the hyperparameter 'kp'"),
        (["run", "--set", "kp"], "expected key=value, got 'kp'"),
        (["run", "--seeds", "many"], "--seeds must be a valid integer; got 'many'"),
        (["run", "--update", "sgdd"], "--update must be one of sgd, npg, adam; got 'sgdd'"),
        (["run", "--seeds", "0"], "--seeds must lie in [1, 100000]; got 0"),
        (["run", "--seeds", str(10**30)], "--seeds must lie in [1, 100000]"),
        (["run", "--label-noise", "1.5"], "label_noise must lie in [0, 1]; got 1.5"),
        (["run", "--group", "1"], "group must be at least 2 with advantage 'grpo': that of a group of 1 is 0"),
        (
            ["run", "--controller", "entropic", "--target", "100"],
            "target 100 exceeds 2.773 nats, the greatest entropy of",
        ),
        (["run", "--controller", "thermostat", "--target", "20x", "--seeds", "2"], "nats) exceeds 2.773 nats"),
        (["run", "--controller", "thermostat", "--target", "linear(3, 1, 10)"], "(3.000 nats) exceeds 2.773 nats"),
        (["run", "--set", f"tau={'[' * 5000}"], "tau: '[[[[[[[[[[[[...[[[[[[[[[[[[[' cannot be read"),
        (["run", "--env", "x" * 5000], "unknown env 'xxx"),
        (["run", "--lr", "-1"], "lr must be positive; got -1.0"),
        (["run", "--lr", "inf"], "--lr must be finite; got inf"),
        (["run", "--logit-std", "inf"], "--logit_std must be finite; got inf"),
        (["run", "--target", "nan", "--controller", "entropic"], "--target must be a number, not NaN; got nan"),
        (["run", "--lr", "1e308", "--update", "adam", *SMALL], "logits are not finite after rollout 1: lower lr"),
        (["run", "--first-seed", "-5"], "seeds must be between 0 and 2^63 - 1, not -5"),
        (["run", "--first-seed", str(2**63)], f"seeds must be between 0 and 2^63 - 1, not {2**63}"),
        (["run", "--env", "exact", "--controller", "steer"], "enumerates outcomes"),
        (["run", "--bogus"], "unknown option --bogus"),
        (["verify", "--bogus"], "unknown option --bogus"),
        (["simulate"], "unknown command 'simulate'; choose from run, verify"),
    ],
)
def test_errors_are_one_line(flags, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(flags) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert len(line) < 1500
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "named"),
    [(["run", "--env", "noisy", *SMALL], "out: File too large"), (["sweep", "--grid", "grid.yaml"], "out/parts/")],
)
def test_a_full_disk_names_what_was_written(args, named, tmp_path, monkeypatch, capsys):
    """As a limit on files, which fails in the same way."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text("{seeds: 2, states: 4, rollouts: 6, env: noisy}")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        assert main([*args, "--out", "out"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capsys.readouterr().err.startswith(f"error: {named}")


def test_process_exit_code_and_stderr():
    command = [sys.executable, "-m", "toybandit", "run", "--env", "nosy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: unknown env 'nosy'")


def test_help_teaches_by_example(capsys):
    assert main(["--help"]) == 0
    assert "toybandit run --env noisy --controller entropic --target 0.6" in capsys.readouterr().out
    for command in ("run", "verify"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert re.search(f"Examples?: toybandit {command} ", capsys.readouterr().out)


def test_help_shows_choices(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    out = capsys.readouterr().out
    for choices in (
        "--controller-preset {paper,released}",
        "--dtype {float64,float32}",
        "--device {cpu,cuda}",
        "--gradient {None,sampled,exact}",
        "--update {None,sgd,npg,adam}",
    ):
        assert choices in out
