"""Benchmarks of the fused head and its alternatives, alone and in a training step; writes docs/benchmarks.md.

    python benchmarks/fused_head.py time [--device cpu] [--threads 1] [--turns 3] [--vocabulary V]   the head alone
    python benchmarks/fused_head.py step [--steps 3] [--threads 1]                                   a training step
    python benchmarks/fused_head.py page                                                             the page again

`time` is `llmtrain bench kernels`. `step` trains the demo's model, with the vocabulary widened to 32,768, with a dense
and a fused head in turn, and times the head separately. Weights are random, so responses have maximum length, and
rewards are random; the cost of a step depends on neither. All numbers go to docs/data/benchmarks.json, where a new
measurement replaces the one on the same machine and shapes; docs/benchmarks.md is generated from it.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from entrostat import Plan
from llmtrain.commands.bench import kernels
from llmtrain.kernels import HeadStats, head_loss, head_stats
from llmtrain.kernels.peers import dense_statistics
from llmtrain.kernels.timing import HEADINGS, cases, label, machine, read, rows, shape_of
from llmtrain.policy.policy import Policy
from llmtrain.sequences.batch import Batch
from llmtrain.settings.presets import get_preset
from llmtrain.training.trainer import Trainer
from llmtrain.verifiers import Verdict, Verifier

DOCS = Path(__file__).parents[1] / "docs"
VOCABULARY = 32_768
HEADS = ("dense", "fused")


class TimedPolicy(Policy):
    """Policy with a dense or fused head whose seconds are counted, gradients included."""

    dense = False
    seconds = 0.0

    def __init__(self, model: PreTrainedModel, kind: str) -> None:
        super().__init__(model)  # proves the policy by its fused head
        self.dense = kind == "dense"
        self.seconds = 0.0

    def token_stats(self, batch: Batch, sequences: Tensor, lay: Any = None) -> HeadStats:
        hidden, targets = self.states(batch, sequences, lay)
        began = time.process_time()
        if self.dense:
            logp, entropy = dense_statistics(hidden, self.head, targets)
            stats = HeadStats(logp, entropy, *torch.zeros(3, len(logp)))
        else:
            stats = head_stats(hidden, self.head, targets)
        self.seconds += time.process_time() - began
        return stats

    def loss(
        self, batch: Batch, sequences: Tensor, plan: Plan, index: Tensor, live: Tensor | None = None
    ) -> tuple[Tensor, HeadStats]:
        """Return the loss; the head's gradients are computed here, and the returned loss passes them to the body."""
        hidden, targets = self.states(batch, sequences)
        began = time.process_time()
        states = hidden.detach().requires_grad_()
        if self.dense:
            logp, entropy = dense_statistics(states, self.head, targets)
            loss, stats = plan.loss(logp, entropy, index), HeadStats(logp, entropy, *torch.zeros(3, len(logp)))
        else:
            loss, stats = head_loss(states, self.head, targets, plan, index)
        loss.backward()
        self.seconds += time.process_time() - began
        assert states.grad is not None
        through = (hidden * states.grad).sum()
        return through + (loss - through).detach(), HeadStats(*(x.detach() for x in stats))


class TimedTrainer(Trainer):
    """Trainer that measures the CPU seconds of its steps."""

    timed: TimedPolicy
    rollout_seconds = 0.0

    def time_collector(self) -> None:
        collect = self.collector.collect

        def timed(step: int) -> Any:
            began = time.process_time()
            found = collect(step)
            self.rollout_seconds = time.process_time() - began
            return found

        self.collector.collect = timed  # type: ignore[method-assign]

    def measured_step(self) -> dict[str, float]:
        """Run the next step; return its CPU seconds, those of its rollout and those of the head."""
        self.timed.seconds, began = 0.0, time.process_time()
        assert self._train_step()["grad_norm"] > 0
        self.step += 1
        whole = time.process_time() - began
        return {"step": whole, "rollout": self.rollout_seconds, "head": self.timed.seconds}


def step(args: list[str]) -> None:
    """Measure the head's share of a training step, dense and fused."""
    parser = argparse.ArgumentParser(prog="benchmarks/fused_head.py step", description=step.__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args(args)
    torch.set_num_threads(given.threads)
    with tempfile.TemporaryDirectory() as folder:
        trainers = {kind: make_trainer(kind, Path(folder)) for kind in HEADS}
        found: dict[str, list[dict[str, float]]] = {kind: [] for kind in HEADS}
        for _ in range(given.steps):
            for kind, trainer in trainers.items():
                found[kind].append(trainer.measured_step())
                print(kind, {name: round(seconds, 2) for name, seconds in found[kind][-1].items()}, flush=True)
    seconds = {kind: {name: median(x[name] for x in found[kind]) for name in found[kind][0]} for kind in HEADS}
    found_step = {"machine": machine("cpu", given.threads), "steps": given.steps, "seconds": seconds}
    print(step_table(found_step))
    if not given.dry:
        store({"step": found_step})


def make_trainer(kind: str, folder: Path) -> TimedTrainer:
    from llmtrain.policy.model import build_tiny, save
    from llmtrain.tasks import get_task

    base = get_preset("countdown-cpu")
    model = build_tiny(VOCABULARY, seed=1)
    save(model, get_task(base).build_tokenizer(0), folder / "model")
    config = replace(base, out=str(folder / kind), controller="clip_higher+entropy_bonus", overwrite=True)
    trainer = TimedTrainer(config, folder / "model")
    trainer.timed = TimedPolicy(trainer.model, kind)
    trainer.policy = trainer.learner.policy = trainer.annotator.policy = trainer.timed
    trainer.time_collector()
    coins = random.Random(0)
    trainer.task = trainer.collector.task = replace(trainer.task, start_verifier=lambda: Coins(coins))
    return trainer


class Coins(Verifier):
    """Verifier with random verdicts."""

    def __init__(self, coins: random.Random) -> None:
        super().__init__()
        self.coins = coins

    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        return [Verdict(self.coins.random() < 0.5, "by chance") for _ in responses]


def store(change: dict[str, Any]) -> None:
    """Store a measurement in docs/data/benchmarks.json and write the page."""
    file = DOCS / "data/benchmarks.json"
    found = {"kernels": [], **(json.loads(file.read_text()) if file.is_file() else {})}
    for run in change.pop("kernels", []):
        found["kernels"] = [old for old in found["kernels"] if where(old) != where(run)] + [run]
    found["kernels"].sort(key=where)
    file.write_text(json.dumps(found | change, indent=1) + "\n")
    file = DOCS / "benchmarks.md"
    others = file.read_text().partition("\n## Training against TRL")[1:] if file.is_file() else ()
    file.write_text(page(found | change) + "".join(others))  # keeps the part of benchmarks/trainer.py


def where(run: dict[str, Any]) -> tuple[Any, ...]:
    """Return machine and vocabularies of a run of `llmtrain bench kernels`."""
    return run["machine"], sorted({line["vocabulary"] for line in run["results"]})


PAGE = """# Benchmarks

This page measures the fused head, a training step with it, sweeps of the simulator, and training against TRL. Other
pages measure the simulator [against NumPy](simulator.md#speed), [rollout engines](scale.md#rollout-engines) and
[verifiers](verifiers.md#speed).

`python benchmarks/fused_head.py time` and `… step` make the tables of the head. All numbers are in
[benchmarks.json](data/benchmarks.json). Each case runs in its own process; on a CPU the cases of a shape take turns.
Times are medians over the turns: elapsed time on CUDA, CPU time on a CPU.

| column | meaning |
|---|---|
| forward | log p and H without gradient; the same for every loss |
| total | GRPO's loss and its backward pass, on logits of 0.1 to 1 nat; with a bonus unless "no entropy" |
| peak | memory held beyond the inputs, gradients included |
| × dense | relative to the first line |
| error of log p | relative to float64 on 32 tokens, in nats |
| error of gradient | relative to float64 on 32 tokens, of ∂loss/∂hidden, as a share of its largest entry |

"live" is the share of tokens with a nonzero advantage; without a bonus, the backward pass skips all other tokens.
"matmuls alone" is the lower bound: three matrix products with nothing in between. Liger's PPO loss and Cut
Cross-Entropy give log-probabilities without entropy; Liger's cross entropy gives neither.

{tables}
{cuda}
{elsewhere}
## A training step

{step}

## Sweeps of the simulator

{sweep}
"""
BARS = {"peak": 1 / 8, "total": 0.9}
"""Targets as a share of dense torch, at V = 151,936 on a CPU."""


def page(found: dict[str, Any]) -> str:
    """Return docs/benchmarks.md without the part of benchmarks/trainer.py."""
    cpu = [run for run in found["kernels"] if run["results"][0]["device"] == "cpu"]
    cuda = [run for run in found["kernels"] if run["results"][0]["device"] == "cuda"]
    absent = "## GPU\n\nNot measured.\n"
    return PAGE.format(
        tables="\n".join(map(section, cpu)),
        cuda="\n".join(map(section, cuda)) or absent,
        elsewhere=elsewhere(cuda, found.get("tiles")),
        step=step_table(found["step"]) if "step" in found else "Not measured.",
        sweep=sweep_table(found["sweep"]) if "sweep" in found else "Not measured.",
    )


ELSEWHERE = """## Faster kernels elsewhere

Our kernel is written in Triton. For 7B's head it takes {ours:.0f} ms, {over:.2f} times the {products:.0f} ms of its
matrix products. At D = 4,096 on an H100 it reaches {rate:.0f} TFLOP/s, entropies included. Others report faster kernels
in CuTe, for cross entropy alone and on an H200. None of them has been measured here.

- QuACK reports 745 TFLOP/s.
- Liger reports 715 TFLOP/s. Its Triton kernel, the one in the tables above, takes 7.8 times as long (Liger-Kernel,
  pull requests 1348 and 1356).
- Liger's `LigerFusedScaledCrossEntropySM90Function` (1334, 1370) also returns a differentiable entropy at a
  temperature, in bf16 and on Hopper only.

A kernel could leave out small gradients. Cut Cross-Entropy skips a tile of 128 tokens × 256 of the vocabulary if all
its probabilities are below 2⁻¹², the least that bf16 adds to 1. Our kernel skips tokens without an advantage, but no
tiles. The table has the share of tiles that would remain (`python -m benchmarks.live_tiles`). This share depends on
the policy. Two models answer the same arithmetic questions here: SmolLM2-135M-Instruct as published, and the same
model trained on these questions.

{tiles}
"""


def elsewhere(cuda: list[dict[str, Any]], tiles: str | None) -> str:
    """Return what is known of other kernels, beside the totals (ms) on a GPU."""
    total = {(c.hidden, c.name): r.total for run in cuda for c, r in read(run) if c.entropy and not isinstance(r, str)}
    needed = [(3584, "fused"), (3584, "matmuls alone"), (4096, "fused")]
    if not set(needed) <= set(total):
        return ""
    ours, products, wide = (total[case] for case in needed)
    rate = 6 * 16_384 * 4096 * 151_936 / wide / 1e9
    numbers = {"ours": ours, "products": products, "over": ours / products, "rate": rate}
    return ELSEWHERE.format(**numbers, tiles=tiles or "Not measured.")


def section(run: dict[str, Any]) -> str:
    """Return the tables of one run."""
    out = [f"## {run['machine']}, torch {run['torch']}, turns: {run['turns']}", ""]
    out += [run["note"], ""] if "note" in run else []
    results = read(run)
    every = cases(results[0][0].device)
    for shape, lines in rows(results):
        told = {line[0] for line in lines}
        left = [label(case) for case in every if shape_of(case) == shape and label(case) not in told]
        lines += [[name, "not measured"] + [""] * (len(HEADINGS) - 2) for name in left]
        out += [f"N×D×V = {shape}", "", "| " + " | ".join(HEADINGS) + " |", "|---" + "|--:" * (len(HEADINGS) - 1) + "|"]
        out += ["| " + " | ".join(line) + " |" for line in lines] + [""]
    plain = {case.name: result for case, result in results if case.entropy and case.live == 1}
    if results[0][0].device == "cpu" and results[0][0].vocabulary == 151_936 and not isinstance(plain["fused"], str):
        out += [bar(name, getattr(plain["fused"], name) / getattr(plain["dense torch"], name)) for name in BARS] + [""]
    return "\n".join(out)


def bar(name: str, ratio: float) -> str:
    """Return one line with a target of the fused head and the measured ratio."""
    verdict = "met" if ratio <= BARS[name] else "missed"
    return f"- {name}, target ≤ {BARS[name]:.3g} of dense: **{ratio:.3f}**, {verdict}."


def step_table(found: dict[str, Any]) -> str:
    lines = [
        f"Model (D = 128) and preset of the demo, with V = {VOCABULARY:,}: CPU seconds of a step, its rollout,",
        f"and the head in statistics and updates. Median of {found['steps']} steps, {found['machine']}.",
        "",
        "| head | step | rollout | head | share of the step | share without rollout |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for kind, s in found["seconds"].items():
        shares = f"{s['head'] / s['step']:.0%} | {s['head'] / (s['step'] - s['rollout']):.0%}"
        lines.append(f"| {kind} | {s['step']:.1f} | {s['rollout']:.1f} | {s['head']:.1f} | {shares} |")
    return "\n".join(lines)


def sweep_table(found: dict[str, Any]) -> str:
    """Return the section of benchmarks/sweep.py."""
    runs, updates, cpu = (found[key] for key in ("runs", "updates", "cpu"))
    rate = round(updates / cpu, -3)
    return (
        f"Made by `python -m benchmarks.sweep`: {runs:,} bandits of `{found['grid']}`,\n"
        f"{updates / 1e6:.0f} million updates, in {cpu:.0f} s of processor time, starts and imports included:\n"
        f"**{runs / cpu:.0f} bandits** or {rate:,.0f} updates per second and core. {found['machine']}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("time", "step", "page"))
    given, rest = parser.parse_known_args()
    if given.what == "step":
        step(rest)
    elif given.what == "time":
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            kernels([*rest, "--out", file.name])
            store({"kernels": [json.loads(Path(file.name).read_text())]})
    else:
        store({})


if __name__ == "__main__":
    main()
