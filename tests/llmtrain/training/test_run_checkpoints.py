"""Checkpoints of a run: when one is written, which is kept, and what damages are noticed."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from same_runs import same

from entrostat.logs.runlog import read_metrics
from llmtrain.cli import main
from llmtrain.commands.eval import locate, parser
from llmtrain.policy.checkpoint import checkpoints, latest, load_state, put, step_of, strays
from llmtrain.process.ranks import Ranks
from llmtrain.settings.config import CheckpointConfig
from llmtrain.training.trainer import Trainer, TrainingStoppedError


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("state.tensors", 0.9),
        ("state.json", 0),
        ("model.safetensors", 0.9),
        ("model.safetensors", None),
        ("config.json", 0.9),
        ("tokenizer.json", None),
        ("checksums.json", None),
        ("checksums.json", 0.5),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before(run, name, kept, capsys):
    for step, fix in ((2, "step-000001"), (1, "start the run anew")):
        file = run / "checkpoints" / f"step-{step:06d}" / name
        if kept is None:
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
        assert main(["resume", str(run), "--steps", "3"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {file.parent} is damaged: {name} ")
        assert line.endswith(fix)
        shutil.rmtree(file.parent)


@pytest.mark.parametrize("name", ["model.safetensors", "state.tensors", "state.json", "tokenizer_config.json"])
@pytest.mark.parametrize("damage", ["flip", "zeros"])
def test_bytes_that_changed_are_noticed(run, name, damage, capsys):
    file = latest(run) / name
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64) if damage == "zeros" else bytes([content[middle] ^ 1])
    file.write_bytes(content)
    for command in (["resume", str(run), "--steps", "3"], ["eval", str(run)]):
        assert main(command) == 2
        assert f"{latest(run)} is damaged: {name} " in capsys.readouterr().err


def as_of_old(checkpoint: Path) -> Path:
    """Write the state of a checkpoint as earlier versions did, and return its file."""
    torch.save(load_state(checkpoint), checkpoint / "state.pt")
    for name in ("checksums.json", "state.json", "state.tensors"):
        (checkpoint / name).unlink()
    return checkpoint / "state.pt"


def test_a_checkpoint_of_an_earlier_version_is_resumed(run):
    before = load_state(latest(run))
    as_of_old(latest(run))
    assert same(load_state(latest(run)), before)
    assert main(["resume", str(run), "--steps", "3"]) == 0
    assert latest(run).name == "step-000003"


def test_a_damaged_pickle_of_an_earlier_version_is_named(run, capsys):
    file = as_of_old(latest(run))
    whole, spots = file.read_bytes(), range(0, 2000, 97)
    for spot in spots:
        file.write_bytes(whole[:spot] + bytes([whole[spot] ^ 0x55]) + whole[spot + 1 :])
        try:
            load_state(file.parent)
        except ValueError as error:
            assert str(error).startswith(f"{file.parent} is damaged: state.pt")  # noqa: PT017 (some are not noticed)


def test_resuming_a_finished_run_leaves_its_checkpoint_alone(run):
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace("save_every: 1", "save_every: 3"))
    before = {path: path.stat().st_mtime_ns for path in (run / "checkpoints").rglob("*")}
    assert main(["resume", str(run)]) == 0
    assert {path: path.stat().st_mtime_ns for path in (run / "checkpoints").rglob("*")} == before


def test_a_checkpoint_that_is_replaced_moves_aside_first(tmp_path, monkeypatch):
    part, path = tmp_path / "step-000001.part", tmp_path / "step-000001"
    for folder in (part, path):
        folder.mkdir()
        (folder / "who").write_text(folder.name)
    removed = []
    monkeypatch.setattr("llmtrain.policy.checkpoint.shutil.rmtree", lambda path, **_: removed.append(path))
    put(part, path)
    assert (path / "who").read_text() == part.name
    assert (tmp_path / "step-000001.old" / "who").read_text() == path.name
    assert removed == [tmp_path / "step-000001.old"]


def test_checkpoints_are_ordered_by_number_and_strays_ignored(run, capsys):
    folder = run / "checkpoints"
    names = ["step-000001", "step-000002", "step-999960", "step-1000000"]
    for name in names[2:]:
        shutil.copytree(folder / "step-000001", folder / name)
    (folder / "step-foo").mkdir()
    (folder / "notes.txt").write_text("")
    (folder / "step-000003.part").mkdir()
    assert [path.name for path in checkpoints(run)] == names
    assert strays(run) == ["notes.txt", "step-foo"]
    for name in names[2:]:
        shutil.rmtree(folder / name)
    assert main(["resume", str(run), "--steps", "3"]) == 0
    assert f"ignored: {folder / 'step-foo'} is not a checkpoint\n" in capsys.readouterr().out
    assert latest(run).name == "step-000003"


class Saves(Trainer):
    """Remembers the steps at which it was saved."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.saved = []

    def save(self):
        self.saved.append(self.step)
        return super().save()


@pytest.mark.parametrize(("every", "saved"), [(2, [2, 4]), (3, [3, 4]), (9, [4])])
def test_a_step_is_saved_once(small, tmp_path, every, saved):
    eval = replace(small.eval, every=0)
    trainer = Saves(replace(small, out=str(tmp_path / "run"), save_every=every, eval=eval), small.model.path)
    trainer.run()
    assert trainer.saved == saved


def test_the_best_checkpoint_is_kept_and_evaluated(small, tmp_path):
    eval, kept = replace(small.eval, every=1), CheckpointConfig(keep_last=1, keep_best="eval/avg@2")
    config = replace(small, out=str(tmp_path / "run"), steps=3, eval=eval, checkpoint=kept)
    Trainer(config, small.model.path).run()
    scores = {line["step"]: line["eval/avg@2"] for line in read_metrics(config.out)}
    top = max((scores[step], step) for step in (1, 2))[1]  # at step 3 the newest is kept anyway
    assert [step_of(path) for path in checkpoints(config.out)] == [top, 3]
    first = max((scores[step], step) for step in (top, 3))[1]
    for flags in (["--best"], ["--best", "eval/avg@2"]):
        assert step_of(locate(parser().parse_args([config.out, *flags])).model) == first
    with pytest.raises(ValueError, match="--best"):
        locate(parser().parse_args([str(checkpoints(config.out)[0]), "--best"]))


def test_a_best_metric_that_no_evaluation_has_ends_the_run_at_once(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"), checkpoint=CheckpointConfig(keep_best="eval/avg@9"))
    with pytest.raises(TrainingStoppedError, match=r"checkpoint\.keep_best eval/avg@9 .*: eval/"):
        Trainer(config, small.model.path).run()


class Pressed(Ranks):
    """Ctrl-C has come to another rank."""

    def most(self, count):
        return 1


def test_ctrl_c_before_the_first_step_leaves_a_resumable_run(small, tmp_path):
    trainer = Saves(replace(small, out=str(tmp_path / "run")), small.model.path)
    trainer.ranks = Pressed()
    trainer.run()
    assert trainer.interrupted
    assert trainer.saved == [0]
