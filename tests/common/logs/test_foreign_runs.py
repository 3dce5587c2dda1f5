"""Logs of other trainers: every kind of file gives the same run; damaged, foreign and large files do no harm."""

import contextlib
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_files import ENTROPY, REWARD, STEPS, event_files, openrlhf_log, trainer_state, wandb_chart, wandb_run

from entrostat.logs.diagnosis.events import look
from entrostat.logs.foreign import gathering, wandb_offline
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


@pytest.mark.slow
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
        (b"", "is no log that can be read; known are CSV"),
        (b"\x80\x04\x95junk", "is no log that can be read"),
        (b"name,value\na,1\n", "is no log that can be read"),
        (b"Name,State,entropy\na,finished,1\n", "is W&B's table of runs"),
        (b'"Relative Time (Wall)","a - entropy"\n"1.5","0.4"\n', "set the chart's x axis to Step"),
        (b'{"log_history": 3}', "has no list log_history"),
        (b'{"log_history": [', "is not whole JSON"),
        (b'{"log_history": []}', "has no metrics: take a log of a run that has finished a step"),
        (b'{"step": 1, "a": {"b": "c"}}\n', "has no metrics"),
        (b"step,entropy\n0.5,0.3\n", "has no step that can be read: the first is “0.5”, and a step is a whole number"),
        (b"step,entropy\n1,high\n", "has no metrics that can be read: the first value of entropy is “high”, at step 1"),
        (b"step,a,b\n1,0,53,0,5\n", "has 5 cells under 3 names in its first row, “1,0,53,0,5”: put numbers"),
        (b"\x1f\x8b\x08\0", "is a gzip file that is damaged or still being written: unpack it with gunzip"),
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
    assert run.notes == (
        "5 lines without a readable step (the first is “1.5”) are left out",
        "1 value of entropy cannot be read, the first “x” at step 1",
        "taken again at the same step, so that the later value counts: entropy at 1 step",
    )


HELD, LOST = 0.6, 60
"""Entropy of a run of 100 steps, and the step from which it has none."""


def table(blank, header="step,entropy,reward", quote=""):
    """Return a CSV whose entropy is `blank` from LOST on."""
    rows = [(step, HELD if step < LOST else blank, 0.4 + step % 7 / 100) for step in range(100)]
    return "".join(",".join(f"{quote}{cell}{quote}" for cell in row) + "\n" for row in [header.split(","), *rows])


def parquet(blank):
    entropy = pa.array([HELD if step < LOST else blank for step in range(100)], pa.float64())
    file = io.BytesIO()
    pq.write_table(
        pa.table({"_step": range(100), "entropy": entropy, "reward": [0.5 + s % 2 for s in range(100)]}), file
    )
    return file.getvalue()


def objects(blank, *names):
    """Return lines of JSON in which these of four metrics are `blank` from LOST on."""
    metrics = ("entropy", "reward", "loss", "grad_norm")
    rows = [
        {"step": step, **{name: blank if step >= LOST and name in names else HELD + step % 2 / 9 for name in metrics}}
        for step in range(100)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def keyed(blank):
    return json.dumps({"step": list(range(100)), "entropy": [HELD if s < LOST else blank for s in range(100)]})


NAN, GONE = "Not a number: entropy from step 60.", "Entropy is not logged from step 60 of 100."
CHART = "Step,a run - entropy,a run - reward"
ENDS = {
    "W&B, NaN": (table("NaN", CHART, '"'), NAN),
    "W&B, Infinity": (table("-Infinity", CHART, '"'), NAN),
    "W&B, blank": (table("", CHART, '"'), GONE),
    "pandas, nan": (table("nan"), NAN),
    "pandas, blank": (table(""), GONE),
    "pandas, None": (table("None"), GONE),
    "Parquet, NaN": (parquet(float("nan")), NAN),
    "Parquet, null": (parquet(None), GONE),
    "JSON, NaN": (objects(float("nan"), "entropy"), NAN),
    "JSON, text": (objects("nan", "entropy"), NAN),
    "JSON, null": (objects(None, "entropy"), GONE),
    "JSON, null in three": (
        objects(None, "entropy", "loss", "grad_norm"),
        "Entropy, loss and grad_norm are not logged from step 60 of 100.",
    ),
    "JSON, null in all": (
        objects(None, "entropy", "reward", "loss", "grad_norm"),
        "Entropy, reward, loss and grad_norm are not logged from step 60 of 100.",
    ),
    "columns, text": (keyed("NaN"), NAN),
    "columns, null": (keyed(None), GONE),
}


@pytest.mark.parametrize(("content", "told"), ENDS.values(), ids=ENDS)
def test_an_entropy_that_is_lost_is_found_in_every_kind_of_file(content, told):
    (run,) = read_file(io.BytesIO(content.encode() if isinstance(content, str) else content))
    assert look(run.metrics).told == told


def test_steps_without_a_number_are_kept_and_told():
    (run,) = read_file(io.BytesIO(objects(None, "entropy", "reward", "loss", "grad_norm").encode()))
    assert run.metrics[LOST:] == [{"step": step} for step in range(LOST, 100)]
    assert run.notes == ("40 steps have no number at all (60 to 99)",)
    assert "60 steps" in run.told()


@pytest.mark.parametrize("gap", ["", "nan", "NaN", "None"])
def test_gaps_of_a_healthy_table_are_no_loss(gap):
    """The entropy comes at every tenth step, and evaluations have rows of their own at the same step."""
    rows = ["step,entropy,reward,eval/acc"]
    for step in range(98):
        rows.append(f"{step},{0.6 if step % 10 == 0 else gap},{0.4 + step % 7 / 100},{gap}")
        rows += [f"{step},{gap},{gap},0.5"] if step % 20 == 0 else []
    (run,) = read_file(io.BytesIO("\n".join(rows).encode()))
    assert len(run.metrics) == 98
    assert look(run.metrics).told == ""
    assert run.notes == ()


@pytest.mark.parametrize("gap", ["", '""'])
def test_a_run_that_is_shorter_than_others_of_its_chart_has_ended(gap):
    rows = ["Step,a - entropy,b - entropy", *(f"{step},0.6,{0.6 if step < 50 else gap}" for step in range(100))]
    found = read_file(io.BytesIO("\n".join(rows).encode()))
    assert [(len(run.metrics), look(run.metrics).told) for run in found] == [(100, ""), (50, "")]


def test_evaluations_under_the_names_of_training():
    """Those whose row says that it is one get a name of their own; of others, the later value counts, and is told."""
    rows = [{"step": step, "entropy": 0.5, "reward": 0.4} for step in range(20)]
    said = [row for step in range(20) for row in (rows[step], {"step": step, "reward": 0.9, "split": "eval"})]
    silent = [row for step in range(20) for row in (rows[step], {"step": step, "reward": 0.9})]
    (apart,), (same,) = (
        read_file(io.BytesIO("".join(json.dumps(row) + "\n" for row in some).encode())) for some in (said, silent)
    )
    assert {line["reward"] for line in apart.metrics} == {0.4}
    assert {line["eval/reward"] for line in apart.metrics} == {0.9}
    assert apart.notes == ()
    assert {line["reward"] for line in same.metrics} == {0.9}
    assert same.notes == ("taken again at the same step, so that the later value counts: reward at 20 steps",)


def test_large_files_are_read_in_part_or_refused(tmp_path, monkeypatch):
    path = json_lines(tmp_path / "a.jsonl")
    (run,) = read_path(path, most=path.stat().st_size // 2)
    assert 10 < len(run.metrics) < 20
    assert "only the beginning of the file is read" in run.notes[0]
    with pytest.raises(ValueError, match="is larger than 0 MiB"):
        read_path(trainer_state(tmp_path / "trainer_state.json"), most=100)
    monkeypatch.setattr(gathering, "MOST_NAMES", 1)
    (run,) = read_path(path)
    assert set(run.metrics[0]) == {"step", "entropy"}
    assert "metrics of each are read" in run.notes[0]


@pytest.mark.parametrize("name", [name for name in KINDS if name != "events"])
def test_gzip_changes_nothing(tmp_path, name):
    plain = KINDS[name](tmp_path / name)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_path(packed) == read_path(plain)
    assert name_of(packed) == name_of(plain)
    with plain.open("rb") as one, packed.open("rb") as other:
        assert runs_in(one) == runs_in(other)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["chart.csv", "trainer_state.json", "verl.jsonl", "openrlhf.log"])
def test_a_byte_order_mark_changes_nothing(tmp_path, name, encoding):
    path = KINDS[name](tmp_path / name)
    plain = read_path(path)
    path.write_bytes(path.read_text().encode(encoding))
    assert read_path(path) == plain


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
