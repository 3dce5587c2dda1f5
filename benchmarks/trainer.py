"""Training compared with TRL's GRPOTrainer: seconds per rollout step on one machine; writes part of docs/benchmarks.md.

    python benchmarks/trainer.py [--rounds 20] [--warm-up 3] [--threads N] [--model FOLDER] [--dry]

Both train the demo's warmed-up model (0.86M parameters, built at the first call) on the same Countdown prompts in the
same order: a step samples 256 responses of up to 16 tokens, 8 per prompt, scores them and makes two optimizer steps of
GRPO. Each trainer has its own process with the same number of threads. They take turns, one rollout step each, so that
other work on the machine affects both. A step is sampling, verifier, statistics, updates, log and all overhead between
them. --dry only prints; otherwise the numbers go to docs/benchmarks.json and, as text, into docs/benchmarks.md.
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)  # otherwise transformers imports a file of this folder as the package kernels

import torch

from llmtrain.kernels.timing import machine
from llmtrain.settings.config import TrainConfig
from llmtrain.settings.presets import get_preset
from llmtrain.tasks import get_task
from llmtrain.training.warmup import start_model

DOCS = Path(__file__).parents[1] / "docs"
HEADING = "## Training against TRL"
BAR = 2.0
"""Target for TRL's seconds relative to llmtrain's."""
UPDATES = 2
"""Optimizer steps per rollout."""
LR = 1e-5
"""Learning rate: small, so that both policies stay alike while they are timed."""


class Gate:
    """Gate at which a trainer waits for its turn, between two rollout steps."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.began: tuple[float, float] | None = None

    def __call__(self, **facts: float) -> None:
        """Report the finished step, if there is one, and wait."""
        if self.began is not None:
            facts |= {"seconds": time.perf_counter() - self.began[0], "cpu": time.process_time() - self.began[1]}
        self.pipe.send(facts)
        if not self.pipe.recv():
            sys.exit()
        self.began = time.perf_counter(), time.process_time()


def configuration(steps: int, out: Path, model: str | None = None) -> TrainConfig:
    """Return the settings of both trainers. model: folder to start from; None for the preset's model."""
    base = get_preset("countdown-cpu")
    return replace(
        base,
        model=replace(base.model, path=model),
        out=str(out),
        steps=steps + 1,
        save_every=steps + 2,
        rollout=replace(base.rollout, prompts=32, n=8, max_new_tokens=16),
        optim=replace(base.optim, mini_batch_size=32 // UPDATES, lr=LR),
        eval=replace(base.eval, every=0),
    )


def llmtrain(config: TrainConfig, gate: Gate) -> None:
    from llmtrain.training.trainer import Trainer

    def report(step: int, metrics: dict[str, float]) -> None:
        phases = {key: value for key, value in metrics.items() if key.startswith("time/")}
        gate(length=metrics["response_length"], reward=metrics["reward"], entropy=metrics["entropy"], **phases)

    trainer = Trainer(config, start_model(config))
    gate()
    trainer.run(report)


def trl(config: TrainConfig, gate: Gate) -> None:
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from llmtrain.policy.model import load

    class Turn(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step % UPDATES == 0:
                last = state.log_history[-1] if state.log_history else {}
                gate(**{ours: last[key] for ours, key in KEYS.items() if key in last})

    task, rollout = get_task(config), config.rollout
    questions = [q for step in range(config.steps) for q in task.train_batch(step, rollout.prompts, config.seed)]
    rows = {"prompt": [q.prompt for q in questions], "problem": list(range(len(questions)))}
    asked: list[list[int]] = []

    def reward(completions: list[str], problem: list[int], **_: Any) -> list[float]:
        asked.append(problem)
        return [float(verdict.correct) for verdict in task.verify([questions[i] for i in problem], completions)]

    model, tokenizer = load(start_model(config))
    size = rollout.prompts * rollout.n // UPDATES
    settings = GRPOConfig(
        config.out,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=size,
        steps_per_generation=UPDATES,
        num_generations=rollout.n,
        max_completion_length=rollout.max_new_tokens,
        temperature=rollout.temperature,
        learning_rate=config.optim.lr,
        adam_beta1=config.optim.betas[0],
        adam_beta2=config.optim.betas[1],
        max_grad_norm=config.optim.max_grad_norm,
        lr_scheduler_type="constant",
        max_steps=config.steps * UPDATES,
        shuffle_dataset=False,
        logging_steps=UPDATES,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    GRPOTrainer(
        model, reward, settings, Dataset.from_dict(rows), processing_class=tokenizer, callbacks=[Turn()]
    ).train()


KEYS = {"length": "completions/mean_length", "reward": "reward", "entropy": "entropy"}
"""TRL's names for metrics that llmtrain also reports."""
TRAINERS: dict[str, Callable[[TrainConfig, Gate], None]] = {"llmtrain": llmtrain, "trl": trl}


def work(name: str, config: TrainConfig, threads: int, pipe: Connection) -> None:
    """Run a trainer; the main function of its process."""
    torch.set_num_threads(threads)
    warnings.filterwarnings("ignore")
    with contextlib.redirect_stdout(None):  # TRL prints its log
        TRAINERS[name](config, Gate(pipe))


def measure(rounds: int, warm_up: int, threads: int, model: str | None = None) -> dict[str, list[dict[str, float]]]:
    """Run the trainers in turn; return what each reports per round."""
    os.environ |= {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    start, pipes, workers = get_context("spawn"), {}, []
    found: dict[str, list[dict[str, float]]] = {name: [] for name in TRAINERS}
    with tempfile.TemporaryDirectory() as folder:
        model = str(start_model(configuration(1, Path(folder), model)))  # once, before both need it
        try:
            for name in TRAINERS:
                pipes[name], other = start.Pipe()
                config = configuration(rounds + warm_up, Path(folder) / name, model)
                workers.append(start.Process(target=work, args=(name, config, threads, other)))
                workers[-1].start()
                other.close()  # so that a crashed worker ends the wait
                pipes[name].recv()
            for i in range(warm_up + rounds):
                for name, pipe in pipes.items():
                    pipe.send(True)
                    said = pipe.recv()
                    if i >= warm_up:
                        found[name].append(said)
        finally:
            for worker in workers:
                worker.kill()
                worker.join()
    return found


def summary(found: dict[str, list[dict[str, float]]], threads: int, load: float) -> dict[str, Any]:
    """Return medians over the rounds, and each phase's share of the total time, as stored."""
    from importlib.metadata import version

    phases = sorted(key for key in found["llmtrain"][0] if key.startswith("time/") and key != "time/step")
    whole = sum(x["time/step"] for x in found["llmtrain"])
    shares = {key[5:]: sum(x[key] for x in found["llmtrain"]) / whole for key in phases}
    return {
        "machine": machine("cpu", threads),
        "versions": {name: version(name) for name in ("torch", "transformers", "trl")},
        "rounds": len(found["trl"]),
        "load_before": load,
        "seconds": {name: median(x["seconds"] for x in rounds) for name, rounds in found.items()},
        "cpu": {name: median(x["cpu"] for x in rounds) for name, rounds in found.items()},
        "quartiles": {name: quantiles((x["seconds"] for x in rounds), n=4)[::2] for name, rounds in found.items()},
        "alike": {key: {name: median(x[key] for x in rounds) for name, rounds in found.items()} for key in KEYS},
        "shares": dict(sorted(shares.items(), key=lambda item: -item[1])),
    }


SECTION = """
Made by `python benchmarks/trainer.py`: the demo's warmed-up model (0.86M parameters), the same Countdown prompts,
groups of 8, 256 responses of up to 16 tokens per rollout step, two optimizer steps, float32. Processes take turns, one
rollout step each; medians of {rounds} rounds (quartiles) on {machine} each, torch {torch}, transformers {transformers}.
The machine's load before the start was {load_before:.1f}.

| trainer | seconds per rollout step | CPU seconds | rollout steps/s | tokens per response | reward | entropy (nats) |
|---|--:|--:|--:|--:|--:|--:|
{table}

TRL's seconds relative to llmtrain's, target ≥ {bar:.0f}: **{ratio:.2f}**, {verdict}. For CPU seconds, which other work
on the machine affects less: {cpu_ratio:.2f}.

llmtrain's time by phase: {shares}.

{remaining}
"""
REMAINING = """\
The model itself takes most of the time: matrix products of its body dominate rollout, forward and backward pass. A
prompt passes through the body once per group (`optim.layout: shared`); with `padded`, it passes once per response, and
a step takes about 60% longer. Smaller micro-batches change little; `packed` rows, which only save padding, take about
as long as `padded` ones."""


def section(found: dict[str, Any]) -> str:
    """Return the end of docs/benchmarks.md."""
    names = {"llmtrain": "llmtrain, local + hf + torch", "trl": f"TRL {found['versions']['trl']}, GRPOTrainer"}
    table = []
    for name, shown in names.items():
        seconds, (low, high) = found["seconds"][name], found["quartiles"][name]
        alike = " | ".join(
            f"{found['alike'][key][name]:.{digits}f}" for key, digits in zip(KEYS, (1, 2, 2), strict=True)
        )
        table.append(
            f"| {shown} | {seconds:.3f} ({low:.3f}–{high:.3f}) | {found['cpu'][name]:.3f} "
            f"| {1 / seconds:.2f} | {alike} |"
        )
    ratio = found["seconds"]["trl"] / found["seconds"]["llmtrain"]
    return (
        HEADING
        + "\n"
        + SECTION.format(
            **found["versions"],
            **{key: found[key] for key in ("rounds", "machine", "load_before")},
            table="\n".join(table),
            bar=BAR,
            ratio=ratio,
            cpu_ratio=found["cpu"]["trl"] / found["cpu"]["llmtrain"],
            verdict="met" if ratio >= BAR else "missed",
            shares=", ".join(f"{name} {share:.0%}" for name, share in found["shares"].items() if share >= 0.005),
            remaining=REMAINING,
        ).rstrip()
        + "\n"
    )


def store(found: dict[str, Any]) -> None:
    """Store the measurement in docs/benchmarks.json and write its part of the page."""
    numbers, page = DOCS / "benchmarks.json", DOCS / "benchmarks.md"
    numbers.write_text(json.dumps(json.loads(numbers.read_text()) | {"trainer": found}, indent=1) + "\n")
    page.write_text(page.read_text().partition("\n" + HEADING)[0] + "\n" + section(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=3, help="rounds before the measurement that are not counted")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="CPU threads of each trainer")
    parser.add_argument("--model", help="folder of the model; by default the demo's model, warmed up at the first call")
    parser.add_argument("--dry", action="store_true", help="print only")
    parser.add_argument("--page", action="store_true", help="only rewrite the page, without a measurement")
    given = parser.parse_args()
    if given.page:
        return store(json.loads((DOCS / "benchmarks.json").read_text())["trainer"])
    if given.rounds < 2:
        parser.error(f"--rounds must be at least 2, for a spread; got {given.rounds}")
    load = os.getloadavg()[0]
    found = summary(measure(given.rounds, given.warm_up, given.threads, given.model), given.threads, load)
    print(section(found))
    if not given.dry:
        store(found)


if __name__ == "__main__":
    main()
