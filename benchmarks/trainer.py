"""Training compared with TRL's GRPOTrainer: seconds per rollout step on one machine; writes part of docs/benchmarks.md.

    python benchmarks/trainer.py [--model SCENE|FOLDER] [--rounds 20] [--warm-up 3] [--threads N] [--dry]

Both train the same model on the same prompts in the same order; a step samples 8 responses to each prompt, scores them
and makes two optimizer steps of GRPO. Models and sizes:

- tiny: the demo's warmed-up model (0.86M parameters, built at the first call), 256 responses of up to 16 tokens to
  Countdown prompts, fp32;
- tiny-two-threads: the same on two threads, where others have one;
- tiny-own-pass: as tiny, but llmtrain computes log-probabilities anew for its ratios;
- smollm2: SmolLM2-135M-Instruct as published, 64 responses of up to 24 tokens to arithmetic questions, each trainer in
  fp32 and in bf16 (autocast). The matrix products of the updates are compared with the rate of square products of
  2,048 on the same threads, measured in every round;
- a folder: this model as tiny.

Each trainer has its own process with the same number of threads. They take turns, one rollout step each, so that
other work on the machine affects all. A step is sampling, verifier, statistics, updates, log and all overhead between
them. --dry only prints; otherwise the numbers go to docs/data/benchmarks.json and, as text, into docs/benchmarks.md.
"""

import argparse
import contextlib
import json
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, Literal

import torch

from entrostat import Plan
from llmtrain.kernels.timing import machine
from llmtrain.policy.gguf_model import convert
from llmtrain.settings.config import TrainConfig
from llmtrain.settings.presets import get_preset
from llmtrain.tasks import get_task
from llmtrain.tasks.task import Task
from llmtrain.training.experience import Experience
from llmtrain.training.warmup import start_model
from llmtrain.verifiers import Verdict, Verifier

if TYPE_CHECKING:
    from llmtrain.training.trainer import Trainer

DOCS = Path(__file__).parents[1] / "docs"
UPDATES = 2
"""Optimizer steps per rollout."""
LR = 1e-30
"""Learning rate: so small that weights stay as they are, and both trainers sample from the same policy."""
SQUARE = 2048
"""Side of the matrices whose product is the machine's rate."""


@dataclass(frozen=True)
class Scene:
    """Model, prompts and sizes that both trainers share, and the bar."""

    heading: str
    """Heading of its section in docs/benchmarks.md."""
    preset: str
    prompts: int
    tokens: int
    """Longest response."""
    bar: float
    """Target for TRL's seconds relative to llmtrain's."""
    precisions: tuple[str, ...] = ("fp32",)
    old_logp: Literal["auto", "trainer"] = "auto"
    """Source of the log-probabilities in llmtrain's ratios; see RolloutConfig."""
    published: str = ""
    """Name of a published model for `llmtrain model`; empty for the preset's own."""
    threads: int = 1
    """CPU threads of each trainer."""

    @property
    def contestants(self) -> list[tuple[str, str]]:
        """Trainers with their precisions."""
        return [(name, precision) for precision in self.precisions for name in TRAINERS]


SCENES = {
    "tiny": Scene("## Training against TRL", "countdown-cpu", prompts=32, tokens=16, bar=3.0),
    "tiny-two-threads": Scene("## The same on two threads", "countdown-cpu", prompts=32, tokens=16, bar=3.0, threads=2),
    "tiny-own-pass": Scene(
        "## The same with a pass of the trainer", "countdown-cpu", prompts=32, tokens=16, bar=3.0, old_logp="trainer"
    ),
    "smollm2": Scene(
        "## Training a pretrained model against TRL",
        "smollm-cpu",
        prompts=8,
        tokens=24,
        bar=3.0,
        precisions=("fp32", "bf16"),
        published="smollm2-135m",
        threads=2,
    ),
}


class Even(Verifier):
    """Accepts responses whose code points have an even sum, about half: nearly every group then has a signal."""

    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        return [Verdict(sum(map(ord, response)) % 2 == 0, response) for response in responses]


def task_of(config: TrainConfig) -> Task:
    """Return the task of both trainers. A published model answers hardly a question, so others judge it."""
    task = get_task(config)
    return replace(task, start_verifier=Even) if config.task.name == "arithmetic" else task


class Gate:
    """Gate at which a trainer waits for its turn, between two rollout steps."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.began: tuple[float, float] | None = None
        self.took: dict[str, float] = {}

    def stop(self) -> None:
        """Stop the clock of the step, for what is done before the gate and is no part of it."""
        if self.began is not None:
            self.took = {"seconds": time.perf_counter() - self.began[0], "cpu": time.process_time() - self.began[1]}
            self.began = None

    def __call__(self, **facts: float) -> None:
        """Report the finished step, if there is one, and wait."""
        self.stop()
        self.pipe.send(facts | self.took)
        if not self.pipe.recv():
            sys.exit()
        self.began = time.perf_counter(), time.process_time()


def configuration(
    scene: Scene, steps: int, out: Path, model: str | None = None, bf16: bool = False, device: str = "cpu"
) -> TrainConfig:
    """Return the settings of both trainers. model: folder to start from; None for the preset's model."""
    base = get_preset(scene.preset)
    return replace(
        base,
        model=replace(base.model, path=model or base.model.path),
        out=str(out),
        device=device,
        steps=steps + 1,
        save_every=steps + 2,
        rollout=replace(
            base.rollout,
            prompts=scene.prompts,
            n=8,
            max_new_tokens=scene.tokens,
            old_logp=scene.old_logp,
        ),
        optim=replace(base.optim, mini_batch_size=scene.prompts // UPDATES, lr=LR),
        engine=replace(base.engine, bf16=bf16),
        eval=replace(base.eval, every=0),
    )


def rate(dtype: torch.dtype) -> float:
    """Return the FLOP/s of a square matrix product, the best of five."""
    a, b = torch.randn(2, SQUARE, SQUARE).to(dtype)
    best = math.inf
    for _ in range(5):
        began = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - began)
    return 2 * SQUARE**3 / best


def products(trainer: "Trainer", mini: Experience, plan: Plan) -> tuple[float, float]:
    """Return the FLOPs of an update's matrix products: those of the body, and those of the output layer, in fp32.

    6 for each weight and token: of the sequences that have a gradient, prompts pass once per group through the body,
    and only response tokens through the output layer.
    """
    head = trainer.policy.head.numel()
    tables = sum(x.weight.numel() for x in trainer.model.modules() if isinstance(x, torch.nn.Embedding))
    whole = sum(x.numel() for x in trainer.model.parameters())
    body = whole - tables - (0 if trainer.model.config.tie_word_embeddings else head)
    live = mini.owner[plan.active().cpu()].unique()
    responses = int(mini.batch.response_lengths[live].sum())
    prompts = dict(zip(mini.group[live].tolist(), mini.batch.prompt_lengths[live].tolist(), strict=True))
    return 6.0 * body * (responses + sum(prompts.values())), 6.0 * head * responses


def llmtrain(config: TrainConfig, gate: Gate) -> None:
    from llmtrain.training.trainer import Trainer

    took: list[tuple[float, float, float]] = []

    def report(step: int, metrics: dict[str, float]) -> None:
        gate.stop()
        phases = {key: value for key, value in metrics.items() if key.startswith("time/")}
        body, head, seconds = (sum(part) for part in zip(*took, strict=True)) if took else (0.0, 0.0, 0.0)
        took.clear()
        dtype = torch.bfloat16 if config.engine.bf16 else torch.float32
        least = body / rate(dtype) + head / rate(torch.float32) if config.device == "cpu" else 0.0
        kept = {key: metrics[key] for key in ("reward", "entropy")}
        gate(length=metrics["response_length"], least=least, updates=seconds, **kept, **phases)

    trainer = Trainer(config, start_model(config))
    trainer.collector.task = task_of(config)
    optimize = trainer.learner.optimize

    def timed(mini: Experience, plan: Plan, *rest: Any) -> dict[str, float]:
        began = time.perf_counter()
        metrics = optimize(mini, plan, *rest)
        took.append((*products(trainer, mini, plan), time.perf_counter() - began))
        return metrics

    trainer.learner.optimize = timed  # type: ignore[method-assign]
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

    task, rollout = task_of(config), config.rollout
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
        use_cpu=config.device == "cpu",
        bf16=config.engine.bf16,
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


def measure(
    scene: Scene, rounds: int, warm_up: int, threads: int, folder: Path, model: str | None, device: str = "cpu"
) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Run the trainers in turn; return what each reports per round. model: a folder, of another than the scene's."""
    os.environ |= {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    start, pipes, workers = get_context("spawn"), {}, []
    found: dict[tuple[str, str], list[dict[str, float]]] = {one: [] for one in scene.contestants}
    if scene.published and model is None:
        model = str(folder / scene.published)
        convert(scene.published, Path(model))
    model = str(start_model(configuration(scene, 1, folder, model)))  # once, before both need it
    try:
        for one in scene.contestants:
            name, precision = one
            pipes[one], other = start.Pipe()
            out, bf16 = folder / "-".join(one), precision == "bf16"
            config = configuration(scene, rounds + warm_up, out, model, bf16, device)
            workers.append(start.Process(target=work, args=(name, config, threads, other)))
            workers[-1].start()
            other.close()  # so that a crashed worker ends the wait
            pipes[one].recv()
        for i in range(warm_up + rounds):
            for one, pipe in pipes.items():
                pipe.send(True)
                said = pipe.recv()
                if i >= warm_up:
                    found[one].append(said)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    return found


def summary(
    scene: Scene, found: dict[tuple[str, str], list[dict[str, float]]], threads: int, load: float
) -> dict[str, Any]:
    """Return medians over the rounds, and each phase's share of the total time, as stored."""
    from importlib.metadata import version

    return {
        "machine": machine("cpu", threads),
        "versions": {name: version(name) for name in ("torch", "transformers", "trl")},
        "rounds": len(found["trl", "fp32"]),
        "load_before": load,
        "runs": [{"trainer": one[0], "precision": one[1]} | numbers(rounds) for one, rounds in found.items()],
    }


def numbers(rounds: list[dict[str, float]]) -> dict[str, Any]:
    """Return the medians of one trainer, and for llmtrain the phases' shares of its time."""
    result: dict[str, Any] = {key: median(x[key] for x in rounds) for key in ("seconds", "cpu", *KEYS)}
    result["quartiles"] = quantiles((x["seconds"] for x in rounds), n=4)[::2]
    if "least" in rounds[0]:
        updated = [x for x in rounds if x["least"]]  # a rollout may have no signal
        result["of the rate"] = median(x["least"] / x["updates"] for x in updated) if updated else None
        whole = sum(x["time/step"] for x in rounds)
        phases = {key for x in rounds for key in x if key.startswith("time/") and key != "time/step"}
        shares = {key[5:]: sum(x.get(key, 0.0) for x in rounds) / whole for key in phases}
        result["shares"] = dict(sorted(shares.items(), key=lambda item: -item[1]))
    return result


SECTIONS = {
    "tiny": """
Made by `python benchmarks/trainer.py`: the demo's warmed-up model (0.86M parameters), the same Countdown prompts,
groups of 8, 256 responses of up to 16 tokens per rollout step, two optimizer steps, float32. By default llmtrain
reuses the statistics of the rollout (`rollout.old_logp: auto`), which saves a forward pass.""",
    "tiny-two-threads": """
Made by `python benchmarks/trainer.py --model tiny-two-threads`: as above.""",
    "tiny-own-pass": """
Made by `python benchmarks/trainer.py --model tiny-own-pass`: on one thread, with
`rollout.old_logp: trainer`. llmtrain then makes one more forward pass after each rollout.""",
    "smollm2": """
Made by `python benchmarks/trainer.py --model smollm2`: SmolLM2-135M-Instruct (134.5M parameters, vocabulary of 49,152)
as published, the same arithmetic questions, groups of 8, 64 responses of up to 24 tokens per rollout step, two
optimizer steps. A response is rewarded if the sum of its code points is even, so most groups have a signal;
llmtrain's updates skip the others.
bf16 is autocast in both; llmtrain's output layer, log-probabilities and loss stay in fp32. In fp32 llmtrain reuses the
statistics of the rollout, which saves a forward pass. In bf16 it does not: rollout and update round differently.""",
}
TABLE = """ Processes
take turns, one rollout step each; medians of {rounds} rounds (quartiles) on {machine} each, torch {torch},
transformers {transformers}. The machine's load before the start was {load_before:.1f}.

| trainer | seconds per rollout step | CPU seconds | rollout steps/s | tokens per response | reward | entropy (nats) |
|---|--:|--:|--:|--:|--:|--:|
{table}

TRL's seconds relative to llmtrain's, target ≥ {bar:g}: {ratios}. For
CPU seconds, which other work on the machine affects less: {cpu_ratios}.

{shares}
"""
REMAINING = {
    "tiny": """
The model itself takes most of the time. A prompt passes through the body once per group (`optim.layout: shared`); with
`padded`, it passes once per response, and a step takes 40 to 50% longer. Smaller micro-batches change little. `packed`
rows, which only save padding, take about as long as `padded` ones.
""",
    "tiny-two-threads": "",
    "tiny-own-pass": "",
    "smollm2": """
The share of the rate is a ratio of two times. The first is what the matrix products of the updates would take at the
machine's rate. The second is what the updates took: loss, backward pass, AdamW and metrics. The machine's rate is that
of a product of two 2,048 × 2,048 matrices, measured in every round; the output layer counts at the rate of fp32.
""",
}


def section(name: str, found: dict[str, Any]) -> str:
    """Return the section of a scene in docs/benchmarks.md, from its heading on."""
    scene, runs = SCENES[name], {(run["trainer"], run["precision"]): run for run in found["runs"]}
    table, shares = [], []
    for run in found["runs"]:
        trainer, precision, (low, high) = run["trainer"], run["precision"], run["quartiles"]
        named = f"TRL {found['versions']['trl']}, GRPOTrainer"
        shown = named if trainer == "trl" else "llmtrain, local + hf + torch"
        alike = " | ".join(f"{run[key]:.{digits}f}" for key, digits in zip(KEYS, (1, 2, 2), strict=True))
        table.append(
            f"| {shown}{f', {precision}' * (len(scene.precisions) > 1)} | {run['seconds']:.3f} ({low:.3f}–{high:.3f}) "
            f"| {run['cpu']:.3f} | {1 / run['seconds']:.2f} | {alike} |"
        )
        if trainer == "llmtrain":
            parts = ", ".join(f"{name} {share:.0%}" for name, share in run["shares"].items() if share >= 0.005)
            kind = f", {precision}" * (len(scene.precisions) > 1)
            share = run.get("of the rate")
            shares.append(f"llmtrain's time by phase{kind}: {parts}.")
            if share:
                shares.append(f"Its updates{kind} reach {share:.0%} of the machine's rate of matrix products.")
    ratios: dict[str, list[str]] = {"seconds": [], "cpu": []}
    for precision in scene.precisions:
        where = f" in {precision}" * (len(scene.precisions) > 1)
        trl, ours = runs["trl", precision], runs["llmtrain", precision]
        times = trl["seconds"] / ours["seconds"]
        ratios["seconds"].append(f"**{times:.2f}**{where}, {'met' if times >= scene.bar else 'missed'}")
        ratios["cpu"].append(f"{trl['cpu'] / ours['cpu']:.2f}{where}")
    text = TABLE.format(
        **found["versions"],
        **{key: found[key] for key in ("rounds", "machine", "load_before")},
        table="\n".join(table),
        bar=scene.bar,
        ratios="; ".join(ratios["seconds"]),
        cpu_ratios=", ".join(ratios["cpu"]),
        shares="\n\n".join(shares),
    )
    return f"{scene.heading}\n{SECTIONS[name]}{text}{REMAINING[name]}"


def sections(stored: dict[str, Any]) -> str:
    """Return the end of docs/benchmarks.md."""
    return "\n".join(section(name, stored[name]) for name in SCENES if name in stored)


def store(name: str, found: dict[str, Any]) -> None:
    """Store a measurement in docs/data/benchmarks.json, and write the sections of all into the page."""
    path, page = DOCS / "data/benchmarks.json", DOCS / "benchmarks.md"
    stored = json.loads(path.read_text())
    stored["trainer"] = stored.get("trainer", {}) | {name: found}
    path.write_text(json.dumps(stored, indent=1) + "\n")
    before = page.read_text().partition("\n" + SCENES["tiny"].heading)[0]
    page.write_text(f"{before}\n{sections(stored['trainer'])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny", help=f"{', '.join(SCENES)}, or the folder of a model")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=3, help="rounds before the measurement that are not counted")
    parser.add_argument("--threads", type=int, help="CPU threads of each trainer, to print only")
    parser.add_argument("--dry", action="store_true", help="print only, as with another model")
    parser.add_argument("--page", action="store_true", help="only rewrite the page, without a measurement")
    given = parser.parse_args()
    name = given.model if given.model in SCENES else "tiny"
    scene, folder = SCENES[name], None if given.model in SCENES else given.model
    if given.page:
        return store(name, json.loads((DOCS / "data/benchmarks.json").read_text())["trainer"][name])
    if given.rounds < 2:
        parser.error(f"--rounds must be at least 2, for a spread; got {given.rounds}")
    load, threads = os.getloadavg()[0], given.threads or scene.threads
    with tempfile.TemporaryDirectory() as place:
        rounds = measure(scene, given.rounds, given.warm_up, threads, Path(place), folder)
    found = summary(scene, rounds, threads, load)
    print(section(name, found))
    if not given.dry and folder is None and threads == scene.threads:
        store(name, found)


if __name__ == "__main__":
    main()
