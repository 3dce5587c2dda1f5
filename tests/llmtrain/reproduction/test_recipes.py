"""Recipes: every one can be planned and runs in small, and its numbers are the papers'."""

import json
import os
import re
from pathlib import Path

import pytest
import torch
import yaml
from published import numbers

from entrostat.logs.runlog import read_metrics
from llmtrain.cli import main
from llmtrain.commands.recipes import page
from llmtrain.evaluation.paper_settings import longest_response
from llmtrain.policy.checkpoint import latest
from llmtrain.recipes.recipe import KINDS, data_sets, get_recipe, names
from llmtrain.reproduction.asked import read_asked
from llmtrain.reproduction.ingredients import data
from llmtrain.reproduction.placed import full_config, placed_as_asked
from llmtrain.reproduction.recipe_config import read_recipe_config, with_ingredients
from llmtrain.reproduction.shrink import shrunk
from llmtrain.settings.nested import to_dict
from llmtrain.training.check import check_evaluation
from llmtrain.verifiers.verifier_registry import named_verifiers

PAPERS = ("entropy_mechanism", "revisiting", "steer", "opefo", "entropic")
QUICK = {"steer/qwen2.5-math-7b", "opefo/qwen2.5-math-7b", "entropic/qwen3-8b", "entropy_mechanism/qwen2.5-7b-kl-cov"}
QUICK |= {"revisiting/qwen2.5-math-7b-clip-higher-m4", "ours/8-gpu", "entropy_mechanism/law-code-qwen2.5-0.5b"}
"""One of each paper, and one that keeps a part of its data, for the quick tests."""
COVER = {
    "entropic/": "nemotron-1.5b qwen3-8b qwen3-8b-dmmpt qwen3-8b-nsr qwen3-8b-off-policy-p qwen3-8b-tau-0 "
    "qwen3-8b-tau-0.5 qwen3-8b-temperature-1 qwen3-8b-without-likely-negative",
    "entropy_mechanism/": "law-code-mistral-small law-qwen2.5-7b-prime law-qwen2.5-7b-reinforce-pp law-qwen2.5-7b-rloo "
    "llama3.1-8b-clip-cov qwen2.5-32b-clip-higher qwen2.5-7b-kl-ref-0.01 qwen2.5-7b-on-policy",
    "opefo/": "qwen2.5-math-7b-entropy-reg qwen2.5-math-7b-minus-only qwen2.5-math-7b-plus-only "
    "qwen2.5-math-7b-static qwen3-4b-kl-cov",
    "ours/": "1-gpu 64-gpu",
    "revisiting/": "llama3.1-8b-instruct-negative-only llama3.1-8b-instruct-pos-adv-reweight-entropy "
    "llama3.1-8b-instruct-positive-only qwen2.5-math-7b-616-kmeans qwen2.5-math-7b-ada-ent-reg-start "
    "qwen2.5-math-7b-clip-free qwen2.5-math-7b-clip-lower qwen2.5-math-7b-clip-tighter qwen2.5-math-7b-entropy-adv "
    "qwen2.5-math-7b-ent-reg-negative "
    "qwen2.5-math-7b-pos-adv-reweight-epoch qwen2.5-math-7b-pos-adv-reweight-stage qwen2.5-math-7b-rand-pos-clip",
    "steer/": "qwen2.5-14b-opo qwen2.5-coder-3b qwen2.5-coder-3b-edit qwen2.5-math-7b-binary "
    "qwen2.5-math-7b-deepscaler-grpo qwen2.5-math-7b-extreme-entropy-loss qwen2.5-math-7b-fork-tokens "
    "qwen2.5-math-7b-linear qwen2.5-math-7b-math-gtpo qwen2.5-math-7b-negative-only qwen2.5-math-7b-positive-only "
    "qwen2.5-math-7b-raise-1-0.1 qwen2.5-math-7b-raise-2-0.1 qwen2.5-math-7b-raise-4-0.05 "
    "qwen2.5-math-7b-raise-3-0.2 qwen2.5-math-7b-lower-2-0.05 qwen2.5-math-7b-lower-3-0.1 "
    "qwen2.5-math-7b-released qwen2.5-math-7b-simplerl-zoo qwen2.5-math-7b-w-reinforce "
    "qwen2.5-math-7b-w-reinforce-0.2",
}
COVERING = QUICK | {paper + name for paper, some in COVER.items() for name in some.split()}
"""Recipes among whose small runs every value of every setting occurs; `make test-long` runs the others too."""
NOT_RUN = {"out", "engine.ddp_timeout", "rollout.timeout", "rollout.gpu_memory_utilization"}
"""Settings that a small run in one process does not use."""
IN_PROCESS = ["--rollout.name", "hf", "--engine.name", "torch", "--topology.name", "local", "--device", "cpu"]
"""Engines without processes of their own, which would take half a minute for each recipe."""


def test_there_is_something_of_every_paper_and_for_every_scale():
    per_paper = {paper: [name for name in names() if name.startswith(f"{paper}/")] for paper in PAPERS}
    assert sum(map(len, per_paper.values())) >= 35
    assert all(len(found) >= 5 for found in per_paper.values())
    assert [get_recipe(f"ours/{count}-gpu").gpus for count in (1, 8, 64)] == [1, 8, 64]


@pytest.mark.parametrize("name", [name for name in names() if not name.startswith("ours/")])
def test_numbers_of_the_papers(name):
    """Values that a recipe marks as stated are those typed from the papers, all of them and no others."""
    values = get_recipe(name).values
    assert {key: value.value for key, value in values.items() if value.kind in ("paper", "script")} == numbers(name)


@pytest.mark.parametrize("name", names())
def test_every_recipe_can_be_planned_and_names_its_sources(name):
    recipe = get_recipe(name)
    assert all(value.kind in KINDS for value in (*recipe.values.values(), *recipe.stated_only.values()))
    assert recipe.about
    assert recipe.paper
    asked = read_asked(["--recipe", name], "llmtrain train")
    found = placed_as_asked(asked)
    plan = found.plan
    assert plan.memory.kv_tokens >= plan.layout.longest_sequence
    config = full_config(found)
    assert config.eval.settings == recipe.value("eval.settings", "")
    assert config.checkpoint.keep_best == recipe.value("checkpoint.keep_best", "")
    longest = config.data.max_prompt_length + longest_response(config)
    assert longest <= config.rollout.max_model_len <= (plan.layout.model.max_positions or longest)
    check_evaluation(with_ingredients(config, asked))


def values_of(settings, before=""):
    """Yield the settings of a small run with each of their values.

    Models count by their family, subsets of a file as one, and the numbers of a controller by their sign: how large
    they are does not change what runs.
    """
    for key, value in settings.items():
        name = before + key
        if isinstance(value, dict) and value:
            yield from values_of(value, f"{name}.")
        elif name == "model.path":
            yield name, json.loads((Path(value) / "config.json").read_text())["architectures"][0]
        elif name not in NOT_RUN:
            of_controller = name.startswith("controller_args.") or name == "target"
            for one in value if isinstance(value, (list, tuple)) else [value]:
                if of_controller and type(one) in (int, float):
                    yield name, f"sign {(one > 0) - (one < 0)}"
                    continue
                yield name, re.sub(r"^.*/(dapo-\d+-\w+)?", "", str(one))


@pytest.mark.slow
def test_every_value_of_a_recipe_occurs_in_a_small_run(tmp_path, monkeypatch):
    """Remedy: add the recipe with the new value to COVER."""
    monkeypatch.chdir(tmp_path)
    runs = {
        name: set(values_of(to_dict(shrunk(read_asked(["--recipe", name, "--shrink", *IN_PROCESS], "llmtrain train")))))
        for name in names()
    }
    covered = set[tuple[str, str]]().union(*(runs[name] for name in COVERING))
    assert {name: values - covered for name, values in runs.items() if values - covered} == {}


RESUMED = {*names()} - {name for i, name in enumerate(sorted(COVERING)) if i % 3}
"""Recipes whose small run is resumed: all but two thirds of those that `make test-all` runs."""


def marks(name):
    """Return the marks of a recipe's small run."""
    return [] if name in QUICK else [pytest.mark.slow] if name in COVERING else [pytest.mark.long]


@pytest.mark.parametrize("name", [pytest.param(x, marks=marks(x)) for x in names()])
def test_every_recipe_runs_in_small(name, tmp_path_factory, monkeypatch):
    """A step, in most of them resumed for a second, with evaluations and checkpoints, under the recipe's rules."""
    shared = tmp_path_factory.getbasetemp() / "shrunk"
    shared.mkdir(exist_ok=True)
    monkeypatch.chdir(shared)
    out = f"runs/{name}"
    recipe = get_recipe(name)
    first = 2 if recipe.value("controller_args.variant") == "epoch" else 1  # a step is an epoch, and it needs two
    command = ["train", "--recipe", name, "--shrink", *IN_PROCESS, "--overwrite", "--out", out]
    assert main([*command, "--steps", f"{first}"]) == 0
    steps = first + (name in RESUMED)
    if name in RESUMED:
        assert main(["resume", out, "--steps", f"{steps}"]) == 0
    lines = read_metrics(out)
    assert [line["step"] for line in lines][:steps] == [*range(steps)]
    assert latest(out).name == f"step-{steps:06}"
    run = yaml.safe_load((shared / out / "config.yaml").read_text())
    assert run["controller"] == recipe.value("controller")
    assert run["optim"]["lr_schedule"] == recipe.value("optim.lr_schedule", "constant")
    assert run["eval"]["settings"] == recipe.value("eval.settings", "")
    assert (
        run["checkpoint"]["keep_best"].partition("@")[0] == recipe.value("checkpoint.keep_best", "").partition("@")[0]
    )
    if recipe.value("data.val_files"):
        assert run["checkpoint"]["keep_best"] in ("", *lines[-1])
        assert "eval/avg" in lines[-1]


class Card:
    """GPU of a machine."""

    total_memory = 0


@pytest.fixture
def equipped(tmp_path, monkeypatch):
    """Folder with empty files for the data sets of three recipes and a model, and no GPU."""
    monkeypatch.chdir(tmp_path)
    for name in ("steer/qwen2.5-math-7b", "entropy_mechanism/llama3.1-8b-grpo", "revisiting/qwen2.5-math-7b-grpo-m4"):
        for item in data(get_recipe(name), "data").values():
            item.path.parent.mkdir(exist_ok=True)
            item.path.touch()
    folder = tmp_path / "models" / "Qwen2.5-Math-7B"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    return tmp_path


STEER = ["steer/qwen2.5-math-7b", "--data-dir", "data"]
LLAMA = ["entropy_mechanism/llama3.1-8b-grpo", "--data-dir", "data"]
FETCH = "run `llmtrain recipes fetch steer/qwen2.5-math-7b --data-dir"


@pytest.mark.parametrize(
    ("args", "gpus", "message"),
    [
        # the machine comes first: who has too few GPUs need not download anything
        ([*STEER, "--models-dir", "none"], 0, "0: use --shrink"),
        (STEER, 2, "2: use --gpus 2"),
        ([*STEER, "--gpu", "h200"], 8, "H200 of 140 GiB and this machine's GPUs have 80"),
        ([*STEER, "--gpus", "1"], 1, "this machine's GPUs have 80"),
        (["steer/qwen2.5-math-7b", "--gpus", "3"], 0, "3 ranks: use gpus=2"),
        # then all files that are missing, in one line
        (
            [*STEER, "--models-dir", "none"],
            8,
            f"lacks model Qwen/Qwen2.5-Math-7B in none: {FETCH} data --models-dir none`",
        ),
        (["steer/qwen2.5-math-7b", "--data-dir", "gone"], 8, "b lacks DAPO-Math-17k.parquet, aime24.parquet"),
        (
            ["steer/qwen2.5-math-7b", "--data-dir", "gone", "--models-dir", "none"],
            8,
            "lacks model Qwen/Qwen2.5-Math-7B in none and DAPO-Math-17k.parquet, aime24.parquet, aime25.parquet, "
            "amc23.parquet, math500.parquet, minerva_math.parquet, olympiadbench.parquet in gone: "
            f"{FETCH} gone --models-dir none`, or name their place with --model.path and --data-dir",
        ),
        (LLAMA, 8, "https://huggingface.co/meta-llama/Llama-3.1-8B and `hf auth login`, then run `ll"),
        (
            [*STEER, "--model.path", "Qwen/Qwen2.5-14B"],
            8,
            "`hf download Qwen/Qwen2.5-14B --local-dir models/Qwen2.5-14B`",
        ),
        ([*STEER, "--model.path", "nowhere"], 8, "model.path: model folder nowhere"),
        (["revisiting/qwen2.5-math-7b-grpo-m4", "--data-dir", "data"], 8, "max_position_embeddings to 5120 in"),
    ],
)
def test_what_is_missing_is_one_line_with_the_command_that_helps(args, gpus, message, equipped, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr("llmtrain.training.check.check_device", lambda *args, **options: None)
    monkeypatch.setattr(Card, "total_memory", 80 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Card)
    monkeypatch.setattr(os, "sysconf", lambda name: 2**21)
    assert main(["train", "--recipe", *args]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (equipped / "runs").exists()


def test_too_little_host_memory_is_one_line(equipped, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(Card, "total_memory", 141 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Card)
    monkeypatch.setattr(os, "sysconf", lambda name: 1)
    assert main(["train", "--recipe", *STEER, "--gpus", "1"]) == 2
    said = capsys.readouterr().err
    assert "host memory and this machine has 0" in said
    assert said.count("\n") == 1


def test_a_model_named_as_on_the_hub_is_found_in_the_models_folder(equipped, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(Card, "total_memory", 80 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Card)
    monkeypatch.setattr(os, "sysconf", lambda name: 2**21)
    args = ["--recipe", *STEER, "--model.path", "Qwen/Qwen2.5-Math-7B"]
    assert read_recipe_config(args, "llmtrain train").model.path == "models/Qwen2.5-Math-7B"


def test_what_a_made_file_is_made_of_is_fetched_too(equipped, capsys):
    command = ["recipes", "fetch", "revisiting/qwen2.5-math-7b-616-kmeans", "--dry-run", "--data-dir", "d"]
    assert main([*command, "--models-dir", "m"]) == 0
    said = capsys.readouterr().out
    assert said.index("d/DAPO-Math-17k.parquet  from https") < said.index("missing  d/dapo-616-kmeans.parquet  by llm")
    assert (
        "llmtrain subset --data d/DAPO-Math-17k.parquet --method kmeans --size 616 --model m/Qwen2.5-Math-7B "
        "--out d/dapo-616-kmeans.parquet" in said
    )
    assert "\n9 to download: llmtrain recipes fetch revisiting/" in said
    assert said.endswith(", then 1 to make by the commands above\n")


def test_files_to_be_made_come_last_with_their_command(equipped, capsys):
    """All others lie there: nothing is downloaded."""
    assert main(["recipes", "fetch", "revisiting/qwen2.5-math-7b-616-random", "--data-dir", "data"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["there"] * 9 + ["to"]
    assert lines[-1].startswith("to make   data/dapo-616-random.parquet: run `llmtrain subset --data data/DAPO-Math")


def test_data_that_is_not_published_is_to_be_brought(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "Qwen2.5-Coder-7B").mkdir(parents=True)
    (tmp_path / "models" / "Qwen2.5-Coder-7B" / "config.json").write_text("{}")
    command = ["recipes", "fetch", "steer/qwen2.5-coder-7b-edit", "--data-dir", "data"]
    assert main([*command, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "missing  data/code_edits.jsonl  own: lines of JSON with the columns prompt" in said
    assert said.endswith("0 to download: llmtrain recipes fetch steer/qwen2.5-coder-7b-edit, and 1 of your own\n")
    assert main(command) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("to bring  data/code_edits.jsonl: it is not published: put a file of your own there, lines")


def test_words_choose_recipes(capsys):
    assert main(["recipes", "steer", "14b", "clip-cov"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.startswith("recipe ")
    assert line.startswith("steer/qwen2.5-14b-clip-cov ")


def test_what_cannot_be_fetched_is_named_with_the_command_for_elsewhere(equipped, capsys, monkeypatch):
    def offline(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    assert main(["recipes", "fetch", "entropy_mechanism/llama3.1-8b-grpo", "--data-dir", "data"]) == 2
    said = capsys.readouterr().err
    assert "(OSError: no network): accept its licence at https://huggingface.co/meta-llama/Llama-3.1-8B and `hf" in said
    assert "`hf download meta-llama/Llama-3.1-8B --local-dir models/Llama-3.1-8B` where there is a network" in said
    assert said.count("\n") == 1


def test_what_must_be_downloaded(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = ["--data-dir", "data", "--models-dir", "models"]
    assert main(["recipes", "fetch", "steer/qwen2.5-math-7b", "--dry-run", *folders]) == 0
    said = capsys.readouterr().out
    assert "missing  models/Qwen2.5-Math-7B  from Qwen/Qwen2.5-Math-7B (about 15 GB)" in said
    assert "missing  data/DAPO-Math-17k.parquet" in said
    assert said.endswith("8 to download: llmtrain recipes fetch steer/qwen2.5-math-7b\n")


def test_what_is_to_be_known_of_a_data_set_is_said(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["recipes", "fetch", "steer/qwen2.5-coder-7b", "--dry-run", "--data-dir", "data"]) == 0
    assert "from Fate-Zero/ArcherCodeR-Dataset (one file of 2.5 GB)" in capsys.readouterr().out


def test_every_setting_is_shown_with_its_source(capsys):
    assert main(["recipes", "show", "steer/qwen2.5-math-7b"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "rollout.prompts 512 paper D.2" in said
    assert "optim.betas 0.9, 0.999 verl's default" in said
    assert "eval.every 10 not stated: our choice" in said


@pytest.mark.slow
def test_a_warm_up_of_a_recipe_in_small(jsonl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"question": f"{i} + 1?", "answer": f"{i} + 1 = {i + 1}\n#### {i + 1}"} for i in range(4)]
    command = [
        "sft",
        "--recipe",
        "entropic/qwen3-8b",
        "--shrink",
        *IN_PROCESS,
        "--data.train-files",
        jsonl(rows),
        "--sft.steps",
        "2",
    ]
    assert main(command) == 0
    made = tmp_path / "runs" / "shrunk" / "entropic" / "qwen3-8b-sft"
    assert (made / "config.json").is_file()
    train = ["train", "--recipe", "entropic/qwen3-8b", "--shrink", *IN_PROCESS, "--model.path", str(made)]
    assert main([*train, "--steps", "1", "--out", "run"]) == 0
    assert [line["step"] for line in read_metrics("run")] == [0, 1]


def test_a_warm_up_of_a_recipe_needs_samples(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sft", "--recipe", "entropic/qwen3-8b", "--shrink"]) == 2
    assert "no questions to train on: name question files with --data.train-files" in capsys.readouterr().err


def test_the_page_is_that_of_the_files(pytestconfig):
    """Remedy: llmtrain recipes page > docs/recipes.md"""
    assert (pytestconfig.rootpath / "docs" / "recipes.md").read_text() == page()


@pytest.mark.parametrize("name", names())
def test_rows_to_keep_and_sources_with_verifiers_are_those_of_the_data_sets(name):
    recipe = get_recipe(name)
    known = {
        f"{column}={value}"
        for data_set in recipe.value("data.train_files")
        for column, values in data_sets()[data_set].get("parts", {}).items()
        for value in values
    }
    kept = set(recipe.value("data.keep", ()))
    assert kept <= known
    assert bool(kept) == bool(known)  # a file of several parts is not trained on as a whole
    sources = {data_sets()[data_set].get("source", data_set) for data_set in recipe.data_sets}
    named = named_verifiers(recipe.value("data.verifier", "math"))
    assert set(named.by_source) <= sources
    programs = {"livecodebench", "archercoder", "acecode", "kodcode"} & sources
    assert {named.of_source(source) for source in programs} <= {"python"}


def test_the_laws_runs_have_2400_updates():
    """Entropy Mechanism, 2.3: 2,400 gradient steps; F.2 and the scripts: 8 updates of 32 prompts a rollout."""
    for name in (name for name in names() if name.startswith("entropy_mechanism/law-")):
        recipe = get_recipe(name)
        updates = recipe.value("rollout.prompts") // recipe.value("optim.mini_batch_size")
        assert (updates, updates * recipe.value("steps")) == (8, 2400)
