"""`llmtrain probe-entropy` from flags or from a run, and refused arguments."""

import json
from dataclasses import replace

import pytest
import yaml

from entrostat.logs.runlog import read_metrics
from llmtrain.commands.probe_entropy import link_checkpoint, read_steps
from llmtrain.commands.probe_entropy import main as probe_entropy
from llmtrain.policy.checkpoint import checkpoints
from llmtrain.settings.nested import to_dict
from llmtrain.studies.probe import ALL, OWN
from llmtrain.training.trainer import Trainer

pytestmark = pytest.mark.slow

TRIED = ("--sgd", "--alone", "2", "--first-order")


@pytest.fixture(scope="module")
def lively(small):
    """Return a configuration with an entropy bonus, so that every mini-batch has gradients."""
    return replace(small, controller="entropy_bonus", threads=1)


@pytest.mark.long
def test_from_flags(lively, tmp_path, capsys):
    file, out = tmp_path / "c.yaml", tmp_path / "probe"
    file.write_text(yaml.safe_dump(to_dict(lively)))
    assert probe_entropy(["--config", str(file), "--steps", "1,0", *TRIED, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "one step of AdamW, updated tokens" in said
    assert "one step of SGD, one token alone" in said
    numbers = json.loads((out / "probe.json").read_text())
    assert list(numbers) == ["AdamW", "SGD", OWN, ALL]
    assert list(numbers["AdamW"]["steps"]) == ["0", "1"]
    each = numbers["AdamW"]["pooled"]["estimators"]["updated"]
    assert list(each) == ["exact flow", "own logit", "STEER Ω", "OPEFO", "−Cov", "output layer", "all weights"]
    assert {name: len(numbers[name]["pooled"]["estimators"]["updated"]) for name in (OWN, ALL)} == {OWN: 5, ALL: 7}
    assert 0 <= each["exact flow"]["relative_mse_scaled"] <= 1
    text = (out / "probe.md").read_text()
    assert text.count("| updated | STEER Ω |") == 4
    assert text.count("| IV correction | raises H |") == 8
    assert (out / "probe.png").stat().st_size > 10_000
    assert [line["step"] for line in read_metrics(out)] == [0, 1]
    with pytest.raises(ValueError, match=r"probe exists: .*--overwrite"):
        probe_entropy(["--config", str(file), "--out", str(out)])
    assert probe_entropy(["--config", str(file), "--steps", "0", "--out", str(out), "--overwrite"]) == 0
    assert list(json.loads((out / "probe.json").read_text())) == ["AdamW"]


def test_from_a_run_that_is_over(lively, tmp_path, capsys):
    run = tmp_path / "run"
    Trainer(replace(lively, out=str(run), save_every=100), lively.model.path).run()
    (checkpoint,) = checkpoints(run)
    before = (checkpoint / "model.safetensors").read_bytes()
    assert probe_entropy([str(run), "--steps", "5"]) == 0
    assert list(json.loads((run / "probe" / "probe.json").read_text())["AdamW"]["steps"]) == ["5"]
    assert [line["step"] for line in read_metrics(run / "probe")] == [4, 5]
    assert checkpoints(run) == [checkpoint]
    assert (checkpoint / "model.safetensors").read_bytes() == before
    steer = ["--controller", "steer", "--out", str(tmp_path / "x")]
    for flags, names in ((["--out", str(run), "--overwrite"], "run with checkpoints"), (steer, "--controller")):
        with pytest.raises(ValueError, match=names):
            probe_entropy([str(run), *flags])


def test_the_newest_checkpoint_that_is_early_enough(tmp_path):
    for step in (2, 4):
        (tmp_path / "run" / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    for i, (first, found) in enumerate([(1, []), (3, ["step-000002"]), (9, ["step-000004"])]):
        out = tmp_path / str(i)
        out.mkdir()
        assert link_checkpoint(tmp_path / "run", out, first) == bool(found)
        assert [path.name for path in checkpoints(out)] == found


def test_steps():
    assert read_steps("10,0,5,5") == [0, 5, 10]


def test_help_says_where_it_begins(capsys):
    with pytest.raises(SystemExit):
        probe_entropy(["--help"])
    assert "newest checkpoint at or before the first of the steps" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["--preset", "countdown-cpu", "--steps", "1;2"], "--steps .*'1;2'"),
        (["--preset", "countdown-cpu", "--steps=-1"], "--steps .*-1"),
        (["--preset", "countdown-cpu", "--alone", "-1"], "--alone .*-1"),
        (["--preset", "countdown-cpu", "--out", ".", "--overwrite"], r"thesis\.tex"),
        (["."], r"not a run: .*config\.yaml"),
    ],
)
def test_a_refusal_names_the_flag_or_the_file(tmp_path, monkeypatch, args, names):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match=names):
        probe_entropy(args)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
