"""Runs, and the same in two halves by new processes; `training/test_resume.py` compares them."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import torch
from deepspeed_scene import STAGES
from tests.ranks import group, run_ranks

from llmtrain.rollout.hf_engine import CopyEngine
from llmtrain.settings.config import DataConfig, EngineConfig, PrimeConfig, TopologyConfig, TrainConfig
from llmtrain.training import trainer as trainer_module
from llmtrain.training.trainer import Trainer
from llmtrain.verifiers import Verdict, Verifier

CLOSED_LOOPS = {
    "adapo": {},
    "adaptive_clip": {},
    "adaptive_entropy": {"target": 2.0},
    "adaptive_entropy_trl": {"target": 2.0},
    "aepo": {},
    "aer": {},
    "arbitrary_entropy": {},
    "entrocraft": {},
    "entropic": {"target": "linear(0.9x, 0.5x, 8)"},
    "epo": {},
    "flexible_clip": {},
    "papo": {},
    "positive_reweight": {},
    "repo_r": {},
    "siren": {"top_p": 0.9},
    "stare": {},
    "temperature_loop": {},
    "thermostat": {"target": "0.8x"},
}
"""Controllers with a state, and their hyperparameters."""


class Even(Verifier):
    """Likes some responses and others not, so that every step has a gradient."""

    def judge(self, responses, ground_truths):
        return [Verdict(sum(response.encode()) % 2 == 0, "") for response in responses]


def cases(base: TrainConfig) -> dict[str, tuple[int, TrainConfig]]:
    """Return the number of ranks, 0 for the torch engine, and the configuration of each case."""
    filtered = replace(base.rollout, filter_groups=True, max_gen_batches=4)
    partial = replace(filtered, partial_tokens=2)
    chosen = DataConfig(curriculum=True)
    growing = replace(filtered, n="piecewise(0: 4, 3: 2, 6: 6)")
    lora, layouts = replace(base.model, lora_rank=2), {"lr_schedule": "cosine", "warmup_steps": 3, "min_lr_ratio": 0.1}
    packed, shared = (replace(base.optim, layout=layout, **layouts) for layout in ("packed", "shared"))
    prime = {"advantage": "prime", "prime": PrimeConfig(lr=1e-4)}
    targets = {"entropic.target": 1.5, "adaptive_entropy.target": 1.5}
    loops = replace(base, controller="steer+entropic+adaptive_entropy+kl_ref", controller_args=targets)
    bf16 = {stage: replace(STAGES[stage], bf16=True) for stage in ("zero1", "zero2")}
    few = replace(loops, steps=6, save_every=3, eval=replace(base.eval, every=0))  # ranks that wait for each other
    closed = {"controller": "clip_higher+thermostat", "controller_args": {"target": "0.8x"}}
    found = {
        name: (0, replace(base, controller=name, controller_args=settings)) for name, settings in CLOSED_LOOPS.items()
    }
    return found | {
        "resets": (0, resetting(loops, 3)),
        "packed": (0, replace(loops, optim=packed, rollout=growing, model=lora, data=chosen, **prime)),
        "shared": (0, replace(loops, optim=shared, rollout=filtered, engine=EngineConfig(bf16=True), **prime)),
        "vllm": (0, replace(few, rollout=replace(base.rollout, name="vllm", kv_cache_gib=0.25), **closed)),
        "asynchronous": (0, replace(loops, rollout=filtered, topology=TopologyConfig(name="ray", staleness=2))),
        "partial": (0, replace(loops, rollout=partial, optim=packed, **prime)),
        "ahead": (0, replace(loops, rollout=partial, topology=TopologyConfig(name="ray", staleness=2))),
        "zero0": (2, replace(few, optim=packed, rollout=partial, engine=STAGES["zero0"])),
        "zero1": (2, replace(few, optim=shared, engine=bf16["zero1"], **prime)),
        "zero2": (
            2,
            replace(
                resetting(few, 2),
                data=chosen,
                optim=replace(packed, reset_with_reference=True),
                rollout=filtered,
                model=lora,
                engine=bf16["zero2"],
            ),
        ),
        "zero3": (2, replace(few, optim=packed, rollout=filtered, model=lora, engine=STAGES["zero3"], **prime)),
    }


def resetting(base: TrainConfig, every: int) -> TrainConfig:
    """Return the configuration whose reference policy, and AdamW's moments with it, start anew every so many steps."""
    optim = replace(base.optim, reset_with_reference=True)
    return replace(base, controller_args={**base.controller_args, "reset_every": every}, optim=optim)


def with_probes(config: TrainConfig) -> TrainConfig:
    """Return the configuration with probes, which must change nothing; of ranks in ZeRO-3 the second has none."""
    probes = 1 if config.engine.zero_stage == 3 else 3
    return replace(config, log=replace(config.log, probes=probes, probe_every=2, probe_samples=2))


MOVES = {
    "moved": ((1, "zero1"), (2, "zero3")),
    "moved often": ((1, "zero1"), (2, "zero2"), (4, "zero3"), (2, "zero0")),
}
"""Numbers of ranks and ZeRO stages between which a run moves, every two steps."""


def moving(base: TrainConfig, steps: int) -> TrainConfig:
    """Return the configuration of a run that moves."""
    cosine = replace(base.optim, lr_schedule="cosine", warmup_steps=3)
    partial = replace(base.rollout, partial_tokens=4)
    loops = {"controller": "steer+entropic", "controller_args": {"target": 1.5}}
    return replace(base, steps=steps, save_every=2, optim=cosine, rollout=partial, **loops)


def train(config: TrainConfig, out: Path, *, resume: bool = False, until: int = 0) -> None:
    """Train to the last step, or until SIGINT in the step before `until`."""
    torch.set_num_threads(1)
    if config.topology.staleness:  # as an actor of Ray does it
        make = lambda config, start, ranks: CopyEngine(start.folder, start.config)  # noqa: E731
        trainer_module.make_rollout_engine = make
    trainer = Trainer(replace(config, out=str(out)), out if resume else config.model.path, resume)
    trainer.collector.task = replace(trainer.task, start_verifier=Even)

    def report(step: int, metrics: dict[str, float]) -> None:
        if step + 1 == until:
            os.kill(os.getpid(), signal.SIGINT)

    trainer.run(report)


def first(configs: dict[str, TrainConfig], out: Path) -> None:
    for name, config in configs.items():
        train(config, out / name / "straight")
        train(with_probes(config), out / name / "halves", until=config.steps // 2)


def second(configs: dict[str, TrainConfig], out: Path) -> None:
    for name, config in configs.items():
        train(with_probes(config), out / name / "halves", resume=True)


def move(config: TrainConfig, out: Path, until: int) -> None:
    train(config, out / "halves", resume=until > 2, until=until)


def places(size: int) -> list[dict[str, object]]:
    """Return the environment variables of as many ranks, or of one process that is no rank."""
    return group(size) or [{}]


def main(out: Path, base: TrainConfig, names: list[str]) -> None:
    """Run some cases, which are changes of `base`; writes OUT/<case>/straight and OUT/<case>/halves."""
    wanted = [name for name in names if name not in MOVES]
    for size in sorted({cases(base)[name][0] for name in wanted}):
        chosen = {name: config for name, (ranks, config) in cases(base).items() if ranks == size and name in wanted}
        for part in (first, second):
            run_ranks(places(size), part, chosen, out)
    for name in MOVES.keys() & set(names):
        config = moving(base, 2 * len(MOVES[name]))
        run_ranks(places(0), train, config, out / name / "straight")
        for number, (size, stage) in enumerate(MOVES[name], 1):
            run_ranks(places(size), move, replace(config, engine=STAGES[stage]), out / name, 2 * number)
