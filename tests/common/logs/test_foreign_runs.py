"""Logs of other trainers: every kind of file gives the same run; damaged, foreign and large files do no harm."""

import contextlib
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_files import ENTROPY, REWARD, STEPS, event_files, openrlhf_log, trainer_state, wandb_chart, wandb_run

from entrostat.logs.foreign import foreign_runs, wandb_offline
from entrostat.logs.foreign.foreign_runs import name_of, read_file, read_path, runs_in


def history(path):
    """Write the Parquet file of a W&B history of TRL, whose _step counts calls of the logger."""
    odd = {"train/global_step": STEPS, "_step": STEPS * 2, "_timestamp": STEPS * 1.0, "note": ["x"] * len(STEPS)}
    columns = {"train/entropy": ENTROPY, "train/reward": [*REWARD[:-1], None]}
    pq.write_table(pa.table(odd | columns), path)
    return path


def json_lines(path):
    """Write lines as verl's file logger does."""
    rows = zip(STEPS.tolist(), ENTROPY.tolist(), REWARD.tolist(), strict=True)
    lines = [{"step": s, "data": {"actor/entropy": h, "critic/score/mean": r, "x": None}} for s, h, r in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


KINDS = {
    "chart.csv": wandb_chart,
    "history.parquet": history,
    "events": event_files,
    "trainer_state.json": trainer_state,
    "verl.jsonl": json_lines,
    "openrlhf.log": openrlhf_log,
    "run-1.wandb": wandb_run,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_the_same_run(tmp_path, name):
    path = KINDS[name](tmp_path / name)
    (run,) = read_path(path)
    assert [line["step"] for line in run.metrics] == STEPS.tolist()
    assert [line["entropy"] for line in run.metrics] == pytest.approx(ENTROPY.tolist(), rel=1e-6)
    rewards = [line.get("reward", REWARD[-1]) for line in run.metrics]
    assert rewards == pytest.approx(REWARD.tolist(), rel=1e-6)
    assert run.notes == ()
    file = next(path.iterdir()) if path.is_dir() else path
    with file.open("rb") as opened:
        assert runs_in(opened) == [run.name]


def test_what_has_no_name_here_is_kept_and_told(tmp_path):
    (run,) = read_path(trainer_state(tmp_path / "trainer_state.json"))
    assert run.kept == ["kl", "eval_reward", "train_loss", "train_runtime"]
    assert run.metrics[9]["eval_reward"] == 0.5
    assert run.metrics[-1]["train_runtime"] == 12.5
    assert "completions/mean_length → response_length; kept under their own names: kl, eval_reward" in run.told()


def test_evaluations_of_openrlhf(tmp_path):
    (run,) = read_path(openrlhf_log(tmp_path / "a.log"))
    assert (run.metrics[-1]["eval/pass@8"], run.metrics[-1]["eval/pass@1"]) == (0.5, 0.25)


def test_a_chart_of_several_runs(tmp_path):
    path = wandb_chart(tmp_path / "a.csv", ("b - 2", "a"))
    assert [run.name for run in read_path(path)] == ["b - 2", "a"]
    with path.open("rb") as file:
        assert runs_in(file) == ["b - 2", "a"]
    over_time = wandb_chart(tmp_path / "b.csv", x="Relative Time (Process)")
    assert [line["step"] for line in read_path(over_time)[0].metrics] == STEPS.tolist()


def test_folders(tmp_path):
    for step in (5, 10):
        (tmp_path / "trl" / f"checkpoint-{step}").mkdir(parents=True)
        (tmp_path / "trl" / f"checkpoint-{step}" / "trainer_state.json").write_text(
            json.dumps({"log_history": [{"step": step, "entropy": 1.0}]})
        )
    (run,) = read_path(tmp_path / "trl")
    assert run.metrics == [{"step": 10, "entropy": 1.0}]
    assert name_of(tmp_path / "trl" / "checkpoint-10" / "trainer_state.json") == "trl"
    (tmp_path / "offline-run-1").mkdir()
    wandb_run(tmp_path / "offline-run-1" / "run-1.wandb")
    assert len(read_path(tmp_path / "offline-run-1")[0].metrics) == len(STEPS)
    event_files(tmp_path / "tb")
    event_files(tmp_path / "tb")  # as a resumed run does
    assert len(read_path(tmp_path / "tb")[0].metrics) == len(STEPS)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is no log that can be read; known are W&B's CSV"),
        (b"\x80\x04\x95junk", "is no log that can be read"),
        (b"name,value\na,1\n", "is no log that can be read"),
        (b"Name,State,entropy\na,finished,1\n", "is W&B's table of runs"),
        (b'"Relative Time (Wall)","a - entropy"\n"1.5","0.4"\n', "set the chart's x axis to Step"),
        (b'{"log_history": 3}', "has no list log_history"),
        (b'{"log_history": [', "is not whole JSON"),
        (b'{"log_history": []}', "has no metrics: take a log of a run that has finished a step"),
        (b'{"step": 1, "a": {"b": "c"}}\n', "has no metrics"),
        (b"PAR1" + bytes(50), "is a damaged Parquet file"),
        (b'"Step","a - b"\n1,"' + b"x" * 200_000 + b'"\n', "is not a CSV file"),
    ],
)
def test_what_is_no_log_is_told_in_one_line(content, told):
    with pytest.raises(ValueError, match=told.replace("(", r"\(")) as error:
        read_file(io.BytesIO(content))
    assert "\n" not in str(error.value)


def test_a_parquet_file_without_steps(tmp_path):
    pq.write_table(pa.table({"entropy": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet is a Parquet file without a column of steps"):
        read_path(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="is not a run: there is no such file or folder"):
        read_path(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"it has no config\.yaml; name one of its files, such as a\.parquet"):
        read_path(tmp_path)


def test_an_offline_run_of_wandb_has_records_over_several_blocks_and_may_still_be_written(tmp_path):
    whole = wandb_run(tmp_path / "run-1.wandb").read_bytes()
    assert len(whole) > 2 * wandb_offline.BLOCK
    (run,) = read_file(io.BytesIO(whole[: len(whole) // 2]))
    assert 10 < len(run.metrics) < 20
    assert run.notes == ()
    damaged = bytearray(whole)
    damaged[len(whole) // 2 :] = b"\xff" * (len(whole) - len(whole) // 2)
    assert "1 lines without a readable step" in read_file(io.BytesIO(damaged))[0].notes[0]


def test_odd_steps_and_numbers_are_left_out():
    odd = ["NaN", "Infinity", "1" + "0" * 400, "true", '"x"', "[1]", "null"]
    lines = [f'{{"step": 1, "entropy": {value}}}' for value in odd]
    lines += [f'{{"step": {value}, "entropy": 2.0}}' for value in ("1.5", "1e300", '"a"')]
    lines += ["[" * 5000, "not JSON", '{"step": 2, "entropy": 0.5}', '{"step": 2, "reward": 1, "entropy": 0.25}']
    (run,) = read_file(io.BytesIO("\n".join(lines).encode()))
    assert run.metrics == [{"step": 1, "entropy": None}, {"step": 2, "entropy": 0.25, "reward": 1}]
    assert run.notes[0] == "5 lines without a readable step are left out"


def test_large_files_are_read_in_part_or_refused(tmp_path, monkeypatch):
    path = json_lines(tmp_path / "a.jsonl")
    (run,) = read_path(path, most=path.stat().st_size // 2)
    assert 10 < len(run.metrics) < 20
    assert "only the beginning of the file is read" in run.notes[0]
    with pytest.raises(ValueError, match="is larger than 0 MiB"):
        read_path(trainer_state(tmp_path / "trainer_state.json"), most=100)
    monkeypatch.setattr(foreign_runs, "MOST_NAMES", 1)
    (run,) = read_path(path)
    assert set(run.metrics[0]) == {"step", "entropy"}
    assert "metrics of each are read" in run.notes[0]


@pytest.mark.parametrize("name", KINDS)
def test_no_damage_raises_anything_but_value_error(tmp_path, name):
    """Bytes are changed, or the end is cut off."""
    path = KINDS[name](tmp_path / name)
    whole = (next(path.iterdir()) if path.is_dir() else path).read_bytes()
    rng = np.random.default_rng(0)
    read = 0
    for _ in range(40):
        damaged = bytearray(whole[: rng.integers(1, len(whole))] if rng.random() < 0.3 else whole)
        for at in rng.integers(0, len(damaged), rng.integers(0, 8)):
            damaged[at] = rng.integers(256)
        with contextlib.suppress(ValueError):
            read += len(read_file(io.BytesIO(bytes(damaged))))
    assert read or name in ("trainer_state.json", "history.parquet")
