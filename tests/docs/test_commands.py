"""Commands of pages run, in small: a tiny model, files of a few questions, one step, engines in this process.

What needs hours, other machines or a browser is run in small by the tests of the command itself, see RUN_BY.
"""

import json
import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.common import foreign_files
from tests.docs.pages import CALLS, MAINS, ROOT, our_words

RUN_BY = {
    "entrostat check-controller": "common/about/test_check_controller.py",
    "entrostat publish": "apps/publish/test_publish_command.py",
    "entrostat-app": "apps/test_launch.py",
    "llmtrain claims": "llmtrain/commands/test_claims.py",
    "llmtrain first-hour": "llmtrain/commands/test_first_hour.py",
    "llmtrain launch": "examples/test_ray_job.py",
    "llmtrain leaderboard": "llmtrain/commands/test_leaderboard.py",
    "llmtrain model smollm2-135m": "llmtrain/policy/test_gguf_model.py",
    "llmtrain train --config run.yaml --topology.name ray": "llmtrain/rollout/ray/test_elastic_engines.py",
    "llmtrain train --preset countdown-cpu --engine.name deepspeed": "llmtrain/policy/test_deepspeed_engine.py",
    "llmtrain train --preset countdown-cpu --model.lora-rank 8": "llmtrain/training/test_training_with_vllm.py",
    "llmtrain train --preset countdown-cpu --rollout.name vllm": "llmtrain/training/test_training_with_vllm.py",
    "llmtrain train --preset countdown-cpu --topology.name ray": "llmtrain/cluster/test_topology.py",
    "llmtrain train --preset countdown-ray": "llmtrain/cluster/test_topology.py",
    "llmtrain train --recipe": "llmtrain/reproduction/test_recipes.py",
    "toybandit forecast": "toybandit/forecast/test_command.py",
    "toybandit leaderboard": "toybandit/test_leaderboard.py",
    "toybandit reproduce": "toybandit/reproduce/test_command.py",
    "toybandit sweep": "toybandit/test_sweep_grid.py",
    "toybandit verify": "toybandit/test_verify.py",
}
"""Tests that run commands which begin so."""
HERE = "--device cpu --rollout.name hf --engine.name torch --nproc 1 --topology.name local --threads 1 --overwrite"
"""Flags for a run in this process."""
TINY = "--model.path tiny --task.train-problems 8 --task.test-problems 2 --sft.steps 1 --sft.examples 8"
ASKED = "--max-new-tokens 4 --rollout hf --device cpu --dtype float32"
SMALL = {
    "train": f"{TINY} {HERE} --steps 1 --save-every 1 --eval.every 0 --optim.mini-batch-size 1 "
    "--data.verifier-workers 1 --rollout.prompts 2 --rollout.n 2 --rollout.max-new-tokens 4",
    "sft": f"{TINY} {HERE} --sft.batch-size 2",
    "eval": f"{ASKED} --samples 2",
    "start-entropy": f"{ASKED} --prompts 2",
    "subset": f"{ASKED} --size 4 --clusters 2 --samples 2",
    "subset --method pass-rate": "--low 0 --high 1",
    "train --checkpoint.keep-best": "--eval.every 1",
    "probe-entropy": "--steps 0,1 --alone 2",
    "probe-entropy --preset": f"{TINY} {HERE} --controller entropy_bonus --rollout.prompts 2 --rollout.n 2 "
    "--rollout.max-new-tokens 4 --optim.mini-batch-size 1",
}
"""Flags that make a command small, or one with such arguments; they come last, so they hold."""
READ = re.compile(r"(?<!--out )\bmodels/\S+")
"""Models that a command reads."""
MODELS = ("Qwen2.5-Math-7B", "MODEL", "runs/my-model", *sorted({m for _, line in CALLS for m in READ.findall(line)}))
RUNS = ("runs/countdown", "runs/demo/grpo", "runs/x", "runs/math")
FILES = {
    **{f"{name}.parquet": (name,) for name in ("DAPO-Math-17k", "aime24", "aime25", "amc23", "math500")},
    "mixed.parquet": ("math", "apps", "taco"),
    "livecodebench/test.parquet": ("livecodebench",),
    "ifeval/test.parquet": ("ifeval",),
}
"""Files of questions, and their sources."""
PROGRAM = {"inputs": ["1\n"], "outputs": ["1\n"]}
TRUTHS = {
    **dict.fromkeys(("apps", "taco", "livecodebench"), json.dumps(PROGRAM)),
    "ifeval": json.dumps({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}),
}
"""Ground truths of sources whose answers are no numbers."""
QUESTIONS = 8
LONG = "--model.max-position-embeddings 32768"
"""Room for the longest responses that pages plan for."""


def is_run_here(line: str) -> bool:
    return not any(" ".join(our_words(line)).startswith(prefix) for prefix in RUN_BY)


def words_of(line: str) -> list[str]:
    """Return our program and its arguments, made small."""
    program, *args = our_words(line.replace("FILE", "gsm8k_train.jsonl"))
    more = [flags for words, flags in SMALL.items() if words.split()[0] == args[0] and {*words.split()} <= {*args}]
    return [program, *args, *" ".join(more).split()]


@pytest.mark.parametrize("prefix", RUN_BY)
def test_a_command_that_is_run_elsewhere_is_on_a_page(prefix):
    assert any(" ".join(our_words(line)).startswith(prefix) for _, line in CALLS)
    assert (ROOT / "tests" / RUN_BY[prefix]).is_file()


def question(i: int, source: str) -> dict[str, Any]:
    """Return a question in verl's form."""
    asked = [{"role": "user", "content": f"What is {i} + {i}?"}]
    return {
        "data_source": source,
        "prompt": asked,
        "reward_model": {"ground_truth": TRUTHS.get(source, str(2 * i)), "style": "rule"},
    }


def write_files(folder: Path) -> None:
    """Write questions, logs of other trainers, and settings, under the names that pages use."""
    for name, sources in FILES.items():
        rows = [question(i, sources[i % len(sources)]) for i in range(QUESTIONS)]
        (folder / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / name)
    sums = [{"question": f"What is {i} + 1?", "answer": f"It is {i + 1}.\n#### {i + 1}"} for i in range(QUESTIONS)]
    (folder / "gsm8k_train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sums))
    scored = [{"response": f"\\boxed{{{i}}}", "ground_truth": "1"} for i in range(3)]
    (folder / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scored))
    for name in ("run.yaml", "mine.yaml"):
        (folder / name).write_text("steps: 3\n")
    (folder / "trl/checkpoint-500").mkdir(parents=True)
    (folder / "tb").mkdir()
    foreign_files.trainer_state(folder / "trl/checkpoint-500/trainer_state.json")
    foreign_files.event_files(folder / "tb/run-1")
    for name in ("wandb_export.csv", "chart.csv"):
        foreign_files.wandb_chart(folder / name)
    (folder / "mine.csv").write_text("Step,ent/mean\n" + "".join(f"{s},{1 / (s + 1)}\n" for s in range(40)))
    steps = zip(foreign_files.STEPS, foreign_files.ENTROPY, foreign_files.REWARD, strict=True)
    lines = [f"step:{step} - actor/entropy:{entropy} - critic/rewards/mean:{reward}" for step, entropy, reward in steps]
    (folder / "verl.log").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    """A folder with everything that the commands name: models, runs, files of questions, logs."""
    from llmtrain.cli import main

    folder = tmp_path_factory.mktemp("scene")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_files(folder)
        sizes = "--model.hidden-size 32 --model.num-layers 1 --model.num-heads 2 --model.intermediate-size 32"
        built = f"--data.train-files gsm8k_train.jsonl --model.vocab-size 300 {sizes} {LONG} --sft.steps 1 --threads 1"
        assert main(["sft", "--preset", "math-cpu", *built.split(), "--out", "tiny"]) == 0
        read = "--data.train-files gsm8k_train.jsonl --data.val-files aime24.parquet amc23.parquet --out runs/first"
        evaluated = "--steps 6 --controller entropy_bonus --eval.every 1 --eval.samples 8 --eval.k 8"
        assert main(["train", "--preset", "math-cpu", *f"{read} {SMALL['train']} {evaluated}".split()]) == 0
    for name in MODELS:
        shutil.copytree(folder / "tiny", folder / name)
    for name in RUNS:
        shutil.copytree(folder / "runs/first", folder / name)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [pytest.param(line, id=f"{page} {line}"[:70]) for page, line in CALLS if is_run_here(line)]
)
def test_a_command_runs(line, scene, tmp_path, monkeypatch, capsys):
    shutil.copytree(scene, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    program, *args = words_of(line)
    if "--write" in args:
        Path(args[args.index("--write") + 1]).unlink(missing_ok=True)
    assert import_module(MAINS[program]).main(args) == 0, capsys.readouterr().err
