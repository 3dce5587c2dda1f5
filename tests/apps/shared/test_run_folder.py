"""Nothing outside the folder of runs is read, whatever the name and whatever the folder contains."""

import itertools
import json
import os
import pickle

import pytest

from entrostat_app.launch import RUNS
from entrostat_app.shared import run_folder
from entrostat_app.views.runs import foreign_logs


def make(root, name, config="steps: 3\n"):
    (root / name).mkdir(parents=True)
    (root / name / "config.yaml").write_text(config)
    (root / name / "metrics.jsonl").write_text('{"step": 0, "entropy": 1.0}\n')


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "runs"
    make(root, "first")
    make(root, "demo/grpo")
    make(root, "demo/run-10")
    make(root, "demo/run-2")
    make(tmp_path, "runs-secret/x", "password: 1\n")
    return root


def test_the_folder_comes_from_the_environment(root, monkeypatch):
    monkeypatch.setenv(RUNS, str(root))
    assert run_folder.folder() == root.resolve()
    monkeypatch.delenv(RUNS)
    monkeypatch.chdir(root.parent)
    assert run_folder.folder() == root.resolve()


def test_runs_are_found_in_nested_folders_and_sorted_as_people_do(root):
    (root / "demo" / "grpo" / "checkpoints" / "x").mkdir(parents=True)
    make(root, "demo/grpo/checkpoints/y")
    make(root, ".hidden/z")
    make(root, "a/b/c/d")
    make(root, "a/b/c/e/f")
    (root / "no-metrics").mkdir()
    (root / "no-metrics" / "config.yaml").write_text("a: 1")
    assert run_folder.names(root) == ["a/b/c/d", "demo/grpo", "demo/run-2", "demo/run-10", "first"]
    assert run_folder.names(root / "first") == ["."]
    assert run_folder.names(root / "nowhere") == []


def test_logs_of_other_trainers_are_found(root, monkeypatch):
    """Event files by their folder, of checkpoints the last; no pipe, no link, no file without metrics."""
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    own = run_folder.names(root)
    for folder, tag in (("tb/run-1", "train/entropy"), ("first/tensorboard", "entropy")):
        writer = tensorboard.SummaryWriter(str(root / folder))
        writer.add_scalar(tag, 1.0, 1)
        writer.close()
    tensorboard.SummaryWriter(str(root / "tb/empty")).close()
    for step in (9, 10):
        (root / f"trl/checkpoint-{step}").mkdir(parents=True)
        (root / f"trl/checkpoint-{step}/trainer_state.json").write_text('{"log_history": []}')
    os.mkfifo(root / "pipe.log")
    (root / "link.log").symlink_to(root / "console.log")
    (root / "console.log").write_text("step:1 - actor/entropy:0.5\n")
    (root / "console.txt").write_text("nothing\n")
    found = run_folder.names(root)
    assert set(found) - set(own) == {"tb/run-1", "trl/checkpoint-10/trainer_state.json", "console.log"}
    log = foreign_logs.read(root, "tb/run-1")
    assert (log.state, log.metrics["entropy"].values.tolist()) == ("imported", [[1.0]])
    state = "trl/checkpoint-10/trainer_state.json"
    for name, names in ((state, rf"^{state} .*TRL"), ("../console.log", "not the name of a run"), ("demo", "^demo ")):
        with pytest.raises(ValueError, match=names):
            foreign_logs.read(root, name)
    monkeypatch.setattr(run_folder, "MOST_LOGS", 0)
    assert run_folder.names(root) == own


def test_the_search_is_bounded(root, monkeypatch):
    monkeypatch.setattr(run_folder, "MOST_ENTRIES", 1)
    assert run_folder.names(root) == []


def test_the_newest_runs_are_kept_in_their_order(root, monkeypatch):
    for age, name in enumerate(["demo/run-10", "demo/run-2", "first", "demo/grpo"]):
        os.utime(root / name / "metrics.jsonl", (1000 - age, 1000 - age))
    found = run_folder.names(root)
    assert run_folder.recent(root, found) == found
    monkeypatch.setattr(run_folder, "MOST_RUNS", 2)
    assert run_folder.recent(root, found) == ["demo/run-2", "demo/run-10"]
    assert "is older than the 2 runs" in run_folder.problem(root, "first", found)


def test_why_a_run_cannot_be_chosen(root):
    make(root, "a/b/c/d/e")
    (root / "again").symlink_to(root / "first")
    found = run_folder.names(root)
    for name, why in (
        ("again", "'first'"),
        ("a/b/c/d/e", "not searched"),
        ("demo", "no config.yaml and metrics.jsonl"),
        ("nowhere", "not in the folder"),
    ):
        problem = run_folder.problem(root, name, found)
        assert problem.startswith(f"'{name}'")
        assert why in problem


def test_names_that_a_link_cannot_hold_are_left_out(root):
    known = run_folder.names(root)
    make(root, "back\\slash")
    make(root, os.fsdecode(b"caf\xe9"))
    make(root, "café")
    assert run_folder.names(root) == sorted([*known, "café"], key=run_folder._natural)


def test_a_root_that_is_not_ours_to_read_is_named(root, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ValueError, match=r"folder of runs .*Permission denied$"):
        run_folder.names(root)


def test_links_are_not_searched(root):
    (root / "out").symlink_to(root.parent / "runs-secret")
    (root / "loop").symlink_to(root)
    assert not [name for name in run_folder.names(root) if name.startswith(("out", "loop"))]


@pytest.mark.parametrize(
    ("name", "names"),
    [
        *((name, "not the name of a run") for name in ("..", "../runs-secret/x", "demo/../../runs-secret/x")),
        *(
            (name, "not the name of a run")
            for name in ("/etc/passwd", "//etc/passwd", "demo\0/grpo", "..\\runs-secret")
        ),
        *((name, "not in the folder of runs") for name in ("nowhere", "~", "first/config.yaml/x")),
        ("x" * 5000, "x"),
        ("{root}/first", "not the name of a run"),
        ("sibling", "sibling.* leads out"),
    ],
)
def test_names_that_lead_elsewhere_are_refused_in_one_line(root, name, names):
    (root / "sibling").symlink_to(root.parent / "runs-secret" / "x")
    for read in (run_folder.inside, run_folder.config, run_folder.command):
        with pytest.raises(ValueError, match=names) as error:
            read(root, name.format(root=root))
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 300


@pytest.mark.parametrize("part", ["config.yaml", "manifest.json", "metrics.jsonl"])
def test_a_link_inside_a_run_that_leads_out_is_refused(root, part):
    (root / "first" / part).unlink(missing_ok=True)
    (root / "first" / part).symlink_to(root.parent / "runs-secret" / "x" / "config.yaml")
    with pytest.raises(ValueError, match="leads out"):
        run_folder.file(root, "first", part)


def test_links_inside_the_folder_are_followed(root):
    (root / "again").symlink_to(root / "first")
    assert run_folder.config(root, "again") == {"steps": 3}


def test_only_regular_files_are_read(root):
    os.mkfifo(root / "first" / "manifest.json")
    assert run_folder.file(root, "first", "manifest.json") is None
    assert run_folder.command(root, "first") is None
    assert run_folder.file(root, "first", "nothing") is None


def test_the_newest_runs_of_one_folder_come_first(root):
    for age, name in enumerate(["demo/run-2", "first", "demo/grpo", "demo/run-10"]):
        os.utime(root / name / "metrics.jsonl", (1000 - age, 1000 - age))
    known = run_folder.names(root)
    assert run_folder.newest(root, known, 2) == ["demo/run-2", "demo/grpo"]
    assert run_folder.newest(root, known, 9) == ["demo/run-2", "demo/grpo", "demo/run-10"]
    (root / "demo" / "run-2" / "metrics.jsonl").unlink()
    assert run_folder.newest(root, known, 1) == ["first"]
    (root / "first" / "metrics.jsonl").write_text("")
    assert run_folder.newest(root, known, 2) == ["demo/grpo", "demo/run-10"]


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in itertools.pairwise("abcdefgh")
)


@pytest.mark.parametrize(
    ("held", "names"),
    [
        (b"!!python/object/apply:os.system ['touch pwned']\n", "plain YAML"),
        (pickle.dumps({"a": 1}), ""),
        (b"- 1\n", "mapping"),
        (b"a: " + b"[" * 5000, ""),
        (b"a: 1\n" * 300_000, "1 MiB"),
        (BOMB.encode(), "100,000 values"),
        *(
            (text, "")
            for text in (b"x: &a [*a]\n", b"x: !!bool foo\n", b"x: !!timestamp foo\n", b"x: !!int ''\n", b"x: [\n")
        ),
    ],
    ids=range(11),
)
def test_a_configuration_that_is_not_plain_values_is_told_in_one_line(root, held, names):
    (root / "first" / "config.yaml").write_bytes(held)
    with pytest.raises(ValueError, match=rf"^first/config\.yaml [^\n]*{names}[^\n]*$"):
        run_folder.config(root, "first")


def test_keys_of_any_kind_become_text(root):
    (root / "first" / "config.yaml").write_text("x: {1: a, b: c}\ny: [{2020-01-01: 1, 2: 3}]\n2020-01-01: 1\n")
    found = run_folder.config(root, "first")
    assert found == {"x": {"1": "a", "b": "c"}, "y": [{"2020-01-01": 1, "2": 3}], "2020-01-01": 1}
    run_folder.experiment(found)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["/a/toybandit/toybandit/__main__.py", "run", "--seeds", "2"], "python -m toybandit run --seeds 2"),
        (["/a/site-packages/llmtrain/cli.py", "resume", "x"], "python -m llmtrain.cli resume x"),
        (["/a/llmtrain/demo.py"], None),
        (["/a/mine.py", "--out", "x"], None),
    ],
)
def test_a_module_is_started_as_one(root, words, shown):
    (root / "first" / "manifest.json").write_text(json.dumps({"command": words}))
    assert run_folder.command(root, "first") == shown


def test_the_command_of_a_run_has_no_place_in_it(root):
    words = ["/home/me/.venv/bin/toybandit", "run", "--set", "kp=1 2"]
    manifest = root / "first" / "manifest.json"
    manifest.write_text(json.dumps({"command": words}))
    assert run_folder.command(root, "first") == "toybandit run --set 'kp=1 2'"
    for broken in ("{", "[]", '{"command": 3}', '{"command": []}', '{"command": [1]}'):
        manifest.write_text(broken)
        assert run_folder.command(root, "first") is None


def test_configurations_are_compared_key_by_key():
    configs = {
        "a": {"seed": 0, "out": "x", "optim": {"lr": 0.1, "betas": [0.9, 0.95]}, "args": {}},
        "b": {"seed": 1, "out": "y", "optim": {"lr": 0.2, "betas": [0.9, 0.95]}, "args": {"kp": 1}},
    }
    assert run_folder.differences(configs) == {
        "seed": {"a": "0", "b": "1"},
        "optim.lr": {"a": "0.1", "b": "0.2"},
        "args.kp": {"a": "–", "b": "1"},
    }
    assert run_folder.experiment(configs["a"]) != run_folder.experiment(configs["b"])
    assert run_folder.experiment(configs["a"]) == run_folder.experiment({**configs["a"], "seed": 7, "out": "z"})
