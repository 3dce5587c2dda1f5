"""`llmtrain leaderboard`, on real runs of a small model."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from entrostat.about.lineup import Entry, entries
from entrostat.settings.plain_yaml import dump_yaml
from llmtrain.cli import main
from llmtrain.policy.checkpoint import checkpoints, step_of
from llmtrain.settings.nested import to_dict
from llmtrain.studies.leaderboard_runs import configurations, done

pytestmark = pytest.mark.slow


@pytest.fixture
def command(small, tmp_path):
    config = replace(small, steps=3, target=0.3, eval=replace(small.eval, every=3), threads=1)
    (tmp_path / "small.yaml").write_text(dump_yaml(to_dict(config)))

    def run(*more: str) -> int:
        given = ("--config", str(tmp_path / "small.yaml"), "--only", "grpo", "aepo", "--out", str(tmp_path / "b"))
        return main(["leaderboard", *given, *more])

    return run


def logs(folder: Path) -> dict[str, float]:
    return {str(path.relative_to(folder)): path.stat().st_mtime for path in folder.glob("*/*/metrics.jsonl")}


def test_from_runs_to_page_and_picture_and_again_from_compact_logs(command, tmp_path, capsys):
    kept = ("--seeds", "2", "--logs", str(tmp_path / "logs"))
    assert command(*kept, "--workers", "2", "--page", str(tmp_path / "x.md")) == 0
    first = logs(tmp_path / "b")
    variants = ("aepo", "ppo")
    assert set(first) == {f"{name}/{seed}/metrics.jsonl" for name in variants for seed in (0, 1)}
    text = (tmp_path / "x.md").read_text()
    assert (tmp_path / "x" / "entropy.png").read_bytes().startswith(b"\x89PNG")
    assert "(x/entropy.png)" in text
    assert "3 rollout steps of 8 × 4 responses, 2 optimizer steps each" in text
    assert text.splitlines()[2].startswith("`aepo`, `ppo` train the same model on countdown:")
    assert "seeds 0 to 1" in text
    assert "hold 0.3 nats" in text
    lines = [json.loads(line) for line in (tmp_path / "b/ppo/0/metrics.jsonl").read_text().splitlines()]
    lines += [json.loads(line) for line in (tmp_path / "b/ppo/1/metrics.jsonl").read_text().splitlines()]
    late = sum(line["entropy"] for line in lines if line["step"] == 2 and "entropy" in line) / 2
    row = next(line for line in text.partition("## All")[2].splitlines() if line.startswith("| `ppo`"))
    assert row.split(" | ")[2] == f"{late:.3f}"
    holding = text.partition("## Holding the target")[2].partition("## All")[0]
    assert holding.count("| `aepo` |") == 1
    assert "`ppo`" not in holding
    assert not (tmp_path / "b" / "leaderboard.md").exists()

    assert command("--seeds", "2") == 0
    assert logs(tmp_path / "b") == first
    assert (tmp_path / "b" / "leaderboard.md").exists()
    capsys.readouterr()
    assert command("--seeds", "2", "--optim.lr", "1e-4") == 2
    assert "ppo/0 holds a run with other settings" in capsys.readouterr().err

    # from compact logs alone
    assert {str(path.relative_to(tmp_path / "logs")) for path in (tmp_path / "logs").glob("*/*")} == {
        f"{name}/{seed}.json.gz" for name in variants for seed in (0, 1)
    }
    shutil.rmtree(tmp_path / "b")
    assert command(*kept, "--page", str(tmp_path / "y.md")) == 0
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "y.md").read_text() == text.replace(" --workers 2", "").replace("x.md", "y.md").replace(
        "x/", "y/"
    )


def test_what_was_stopped_goes_on_and_what_fails_is_told(command, small, tmp_path):
    folder = tmp_path / "b" / "ppo"
    folder.mkdir(parents=True)
    (folder / "0").write_text("in the way")
    assert command("--seeds", "1") == 1
    text = (tmp_path / "b" / "leaderboard.md").read_text()
    assert f"- `ppo`: error: cannot write to {folder / '0'}" in text
    assert "| `ppo` |" not in text
    (folder / "0").unlink()
    stopped = tmp_path / "b" / "aepo" / "0"
    before, last = sorted((stopped / "checkpoints").iterdir())
    written = before.stat().st_mtime_ns
    last.rename(tmp_path / "kept")
    assert command("--seeds", "1") == 0
    assert last.exists()
    assert before.stat().st_mtime_ns == written  # gone on from, not written anew
    assert "| `ppo` |" in (tmp_path / "b" / "leaderboard.md").read_text()


@pytest.mark.long
def test_a_last_evaluation_that_was_missed_is_made_up_for(command, tmp_path):
    alone = ("--seeds", "1", "--only", "grpo")
    assert command(*alone) == 0
    metrics = tmp_path / "b" / "ppo" / "0" / "metrics.jsonl"
    *before, last = metrics.read_text().splitlines(keepends=True)
    assert "eval/avg@" in last
    metrics.write_text("".join(before))
    assert command(*alone) == 0
    *same, again = metrics.read_text().splitlines(keepends=True)
    assert same == before
    measured = [{k: v for k, v in json.loads(line).items() if k.startswith("eval/")} for line in (last, again)]
    assert measured[0] == measured[1]


@pytest.fixture
def board(small, tmp_path):
    """A leaderboard with a run of 10,000 steps that has taken three."""
    (tmp_path / "long.yaml").write_text(dump_yaml(to_dict(replace(small, steps=10_000, save_every=10_000))))
    args = ["--config", str(tmp_path / "long.yaml"), "--only", "grpo", "--out", str(tmp_path / "b"), "--seeds", "1"]
    board = subprocess.Popen([sys.executable, "-m", "llmtrain", "leaderboard", *args], stdout=subprocess.DEVNULL)
    metrics = tmp_path / "b" / "ppo" / "0" / "metrics.jsonl"
    wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 3)
    yield board
    board.kill()
    board.wait()


def test_a_signal_lets_its_runs_save(board, tmp_path):
    board.terminate()
    assert board.wait(120) == 128 + signal.SIGTERM
    run = tmp_path / "b" / "ppo" / "0"
    (saved,) = checkpoints(run)
    assert step_of(saved) == len((run / "metrics.jsonl").read_text().splitlines()) > 3


@pytest.mark.long
def test_no_run_outlives_it(board):
    psutil = pytest.importorskip("psutil")
    (run,) = psutil.Process(board.pid).children()
    board.kill()
    board.wait()
    wait_for(lambda: not run.is_running())


def wait_for(found: Callable[[], bool], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_only_those_with_a_target_are_given_one(small, tmp_path):
    base = replace(small, target=0.3)
    runs = {entry.name: configurations(base, entry, [4], tmp_path)[0] for entry in entries()}
    assert len({config.out for config in runs.values()}) == len(runs)
    assert (runs["entropic"].target, runs["steer"].target) == (0.3, None)
    own = Entry("entropic+steer", {"entropic.target": 0.4})
    assert configurations(base, own, [0], tmp_path)[0].target is None
    assert runs["clip_cov (k=0.02)"].controller_args == {"k": 0.02}
    assert {config.seed for config in runs.values()} == {4}
    assert done(runs["steer"]) == 0


def test_a_run_that_was_begun_anew_is_no_other(small, tmp_path):
    """Its folder had settings but no checkpoint, so it was started again with --overwrite."""
    (config,) = configurations(small, Entry("steer"), [0], tmp_path)
    folder = Path(config.out)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(dump_yaml(to_dict(replace(config, overwrite=True))))
    assert done(config) == 0


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--only", "stear"], "'stear'"),
        (["--stepz", "3"], "--stepz"),
        (["--controller", "steer"], "use --only"),
        (["--set", "kp=2"], "use --only"),
    ],
)
def test_mistakes_are_told_in_a_line(wrong, names, capsys, tmp_path):
    assert main(["leaderboard", "--preset", "countdown-cpu", "--out", str(tmp_path / "b"), *wrong]) == 2
    told = capsys.readouterr().err
    assert names in told
    assert told.count("\n") == 1


@pytest.mark.long
def test_workers_that_begin_together_start_from_one_warm_up(small, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = replace(small.model, path=None, hidden_size=32, num_layers=1, num_heads=1, intermediate_size=32)
    sft = replace(small.sft, examples=64, steps=2, batch_size=8)
    config = replace(small, model=model, sft=sft, steps=1, eval=replace(small.eval, every=0), threads=1)
    (tmp_path / "small.yaml").write_text(dump_yaml(to_dict(config)))
    flags = "--config small.yaml --only grpo clip_higher --seeds 1 --workers 2"
    assert main(["leaderboard", *flags.split()]) == 0
    assert "warm-up 2/2" in capsys.readouterr().out
    logs = [path.read_text() for path in tmp_path.rglob("0.log")]
    assert len(logs) == 2
    assert not any("warm-up" in log for log in logs)
