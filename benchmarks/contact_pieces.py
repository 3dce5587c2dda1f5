"""Pieces of the first minutes on a GPU. Each stores what it has measured as soon as it has it."""

import json
import os
import re
import string
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from benchmarks import trainer

from entrostat.logs.runlog import read_metrics
from llmtrain.doctor import shapes, trial_run
from llmtrain.kernels import timing
from llmtrain.plan.cost import make_plan
from llmtrain.plan.gpu import GIB
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.policy.model import save
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf import HFRollout, ways
from llmtrain.sequences.rollouts import Rollouts

ROOT = Path(__file__).parents[1]
TOKENS, PROMPT, GROUP = 64, 48, 8
"""Tokens of a response and of a prompt, and responses to a prompt, in the measurement of decoding."""


@dataclass(frozen=True)
class Contact:
    """Device, folder and name of a piece, and the folder of a pretrained model if there is one."""

    device: str
    out: Path
    piece: str
    model: Path | None

    @property
    def rehearses(self) -> bool:
        return self.device == "cpu"

    def store(self, found: Any) -> None:
        (self.out / f"{self.piece}.json").write_text(json.dumps(found, indent=1) + "\n")


# Decoding -------------------------------------------------------------------------------------------------------------


def decode(contact: Contact) -> None:
    """Milliseconds a token in each way, of them the kernels', and whether all ways draw the same tokens."""
    sizes = [shapes.TINY] if contact.rehearses else [shapes.SMOL, shapes.SMALL]
    dtype = torch.float32 if contact.rehearses else torch.bfloat16
    found = []
    for shape in sizes:
        model = shapes.make(shape, contact.device, dtype).eval()
        for rows in (16,) if contact.rehearses else (64, 256, 1024):
            drawn: dict[str, Rollouts] = {}
            sampler = _sampler(model, None)  # makes the attention the trainer's, on which the ways depend
            for way in [way for way in ways(sampler.model) if way != "apart"]:
                case: dict[str, Any] = {"model": shape.name, "rows": rows, "way": way}
                try:
                    case["ms_a_token"], drawn[way] = _timed(model, way, rows)
                    case["kernels_ms_a_token"] = None if contact.rehearses else _kernels(model, way, rows)
                    case["responses_alike"] = _alike(drawn[way], next(iter(drawn.values())))
                    found.append(case)
                except RuntimeError as error:
                    found.append(case | {"error": str(error).splitlines()[0]})
                contact.store(found)


def _sampler(model: Any, way: Any) -> HFRollout:
    generator = torch.Generator().manual_seed(0)
    return HFRollout(model, build_char_tokenizer("0123456789"), max_new_tokens=TOKENS, generator=generator, way=way)


def _prompts(rows: int) -> list[list[int]]:
    return torch.randint(2, 500, (rows // GROUP, PROMPT), generator=torch.Generator().manual_seed(1)).tolist()


def _timed(model: Any, way: str, rows: int, rounds: int = 3) -> tuple[float, Rollouts]:
    """Return the milliseconds a token, the median after a first round, and what was drawn."""
    took = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        drawn = _sampler(model, way).generate(_prompts(rows), GROUP)
        took.append((time.perf_counter() - began) * 1e3 / TOKENS)
    return median(took[1:]), drawn


def _alike(one: Rollouts, other: Rollouts) -> float:
    """Return the share of responses that are the same."""
    return sum(a == b for a, b in zip(one.responses(), other.responses(), strict=True)) / len(one)


def _kernels(model: Any, way: str, rows: int) -> float:
    """Return the milliseconds a token that the GPU's kernels take, one after another."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        _sampler(model, way).generate(_prompts(rows), GROUP)
    return sum(event.self_device_time_total for event in seen.key_averages()) / 1e3 / TOKENS


# Tests ----------------------------------------------------------------------------------------------------------------


def tests(contact: Contact) -> None:
    """Outcome of the tests that need a GPU: compiled kernels, layers and trainings."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/llmtrain/test_cuda.py"]
    environment = os.environ | {"TRITON_INTERPRET": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    said = done.stdout.splitlines()
    counts = dict(reversed(part.split(" ")) for part in re.findall(r"\d+ (?:passed|failed|skipped|error)", said[-1]))
    failed = [line for line in said if line.startswith(("FAILED", "ERROR"))]
    contact.store({"counts": {name: int(count) for name, count in counts.items()}, "failed": failed})
    if done.returncode:
        raise SystemExit(f"tests: {said[-1]}")


# Ledger ---------------------------------------------------------------------------------------------------------------


def ledger(contact: Contact) -> None:
    """Memory of three training steps beside a process that takes and frees what the plan gives an engine."""
    rehearses = contact.rehearses
    shape, share = (shapes.TINY, 0.4) if rehearses else (shapes.MIDDLE, 0.4)
    dtype = torch.float32 if rehearses else torch.bfloat16
    folder = shapes.build(shape, contact.out / "models" / shape.name, contact.device, dtype)
    prompts, tokens = (4, 16) if rehearses else (32, 256)
    plan = make_plan(
        PlanConfig(
            model=str(folder),
            gpu="h100",
            gpus=1,
            gpus_per_node=1,
            prompts=prompts,
            n=GROUP,
            mini_batch_size=prompts // 2,
            steps=3,
            max_prompt_length=64,
            mean_prompt_length=24,
            max_response_length=tokens,
            mean_response_length=tokens - 1,
            micro_batch_tokens=8192,
            zero_stage=1,
            gpu_memory_utilization=share,
        )
    )
    engine = 0.01 if rehearses else share * torch.cuda.get_device_properties(0).total_memory / GIB
    book = contact.out / "ledger-free.json"
    os.environ |= {"FIRST_CONTACT_GIB": str(engine), "FIRST_CONTACT_LEDGER": str(book)}
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    run = contact.out / "runs/ledger"
    ended = trial_run.train(
        {
            "out": str(run),
            "steps": 3,
            "save_every": 4,
            "device": contact.device,
            "model": {"path": str(folder)},
            "task": {"train_problems": 256, "test_problems": 0},
            "eval": {"every": 0},
            "controller": "entropy_bonus",
            "engine": {"name": "deepspeed", "zero_stage": 1, "bf16": not rehearses},
            "optim": {"lr": 1e-6, "mini_batch_size": prompts // 2, "layout": "packed", "micro_batch_tokens": 8192},
            "rollout": {
                "name": "benchmarks.ledger_engine:LedgerEngine",
                "prompts": prompts,
                "n": GROUP,
                "max_new_tokens": tokens,
            },
        },
        600,
    )
    lines = read_metrics(run) if ended.code == 0 else []
    keys = ("memory/allocated_gib", "memory/reserved_gib", "time/step", "time/rollout")
    contact.store(
        {
            "model": shape.name,
            "engine_gib": engine,
            "predicted_training_gib": sum(plan.memory.training.values()) / GIB,
            "measured": [{key: line.get(key) for key in keys} for line in lines],
            **(json.loads(book.read_text()) if book.exists() else {}),
            "ended": ended.code,
            "said": "" if ended.code == 0 else ended.said,
        }
    )
    if ended.code:
        raise SystemExit(f"ledger: {ended.said}")


# Head -----------------------------------------------------------------------------------------------------------------


def head(contact: Contact) -> None:
    """The fused head's cases, each alone on the GPU, those without a measurement on docs/benchmarks.md first."""
    if contact.rehearses:
        todo = [timing.Case(name, 128, 64, 2000) for name in ("dense torch", "fused", "Cut Cross-Entropy")]
    else:
        missing = set(re.findall(r"^\| ([^|]+) \| not measured", (ROOT / "docs/benchmarks.md").read_text(), re.M))
        todo = sorted(timing.cases("cuda"), key=lambda case: (timing.label(case) not in missing, case.tokens))
    found: list[tuple[timing.Case, timing.Result | str]] = []
    for case in todo:
        found += timing.measure([case], turns=1)
        contact.store(timing.report(found, timing.machine(contact.device), turns=1))


# Training -------------------------------------------------------------------------------------------------------------


def _policy(contact: Contact) -> Path:
    """Return the folder of the pretrained model, or of one with random weights."""
    if contact.model:
        return contact.model
    shape = shapes.TINY if contact.rehearses else shapes.SMOL
    folder = contact.out / "models" / f"{shape.name}-text"
    if not (folder / "config.json").is_file():
        save(shapes.make(shape, contact.device, torch.float32), build_char_tokenizer(string.printable), folder)
    return folder


def trl(contact: Contact) -> None:
    """Seconds of a rollout step in TRL and here, in turn."""
    scene = trainer.SCENES["smollm2"]
    if contact.rehearses:
        scene = replace(scene, precisions=("fp32",), prompts=4)
    rounds, warm_up = (2, 1) if contact.rehearses else (8, 2)
    model = str(_policy(contact))
    found = trainer.measure(scene, rounds, warm_up, 1, contact.out / "runs", model, contact.device)
    took = {" ".join(one): median(x["seconds"] for x in each) for one, each in found.items()}
    contact.store({"model": Path(model).name, "seconds_a_step": took, "rounds": rounds})


def study(contact: Contact) -> None:
    """Runs of a study, seed by seed, so that a cut leaves whole seeds; finished runs are kept and others go on."""
    rehearses = contact.rehearses
    rules = ("grpo", "clip_higher") if rehearses else ("grpo", "thermostat mode=bonus", "kl_ref", "clip_higher")
    workers, seeds = ("1", "1") if rehearses else ("3", "5")
    command = [sys.executable, "-m", "llmtrain", "leaderboard", "--preset", "smollm-cpu", "--target", "0.3"]
    command += ["--device", contact.device, "--workers", workers, "--seeds", seeds, "--only", *rules]
    command += ["--model.path", str(_policy(contact))]
    command += ["--out", str(contact.out / "runs/study"), "--logs", str(contact.out / "study")]
    if rehearses:
        command += ["--steps", "2", "--rollout.prompts", "2", "--rollout.max-new-tokens", "8", "--threads", "1"]
        command += ["--optim.mini-batch-size", "1", "--eval.every", "0", "--task.test-problems", "4"]
    done = subprocess.run(command, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"study: exit code {done.returncode}")
    contact.store({"logs": sorted(path.name for path in (contact.out / "study").iterdir())})
