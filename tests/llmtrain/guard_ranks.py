"""Guards on ranks under DeepSpeed; `training/test_guard_ranks.py` judges what they did."""

from dataclasses import replace
from pathlib import Path

import torch
from deepspeed_scene import BF16, CLIPPED, OPTIONS, STAGES, experience_of, part_of, policy_of, step, weights

from entrostat import make
from llmtrain.policy.deepspeed_engine import DeepSpeedEngine
from llmtrain.policy.engine import TorchEngine
from llmtrain.process.clock import Clock
from llmtrain.process.ranks import join, leave
from llmtrain.settings.config import EngineConfig, GuardConfig, TrainConfig
from llmtrain.training.guard import Guard
from llmtrain.training.learner import Learner
from llmtrain.training.run import train_rank
from llmtrain.training.trainer import Trainer

ENGINES = STAGES | {"bf16-1": BF16["bf16-1"], "offload2": OPTIONS["offload2"], "offload3": OPTIONS["offload3"]}
CALM = GuardConfig(non_finite="skip", grad_norm="skip", grad_norm_above=1e9)
FAULTS = {"limit": replace(CALM, grad_norm_above=1e-9), "nan": CALM, "inf": CALM}
"""Guards of an update that is left out: by its limit on both ranks, or because of a fault on the first rank only."""


def updates(config: EngineConfig | None, ranks, faults: tuple[str, ...]) -> dict:
    """Weights after each update, of which those with a fault are to be left out, and what the guard counted."""
    policy = policy_of(config or EngineConfig())
    whole = experience_of(policy)
    mine = part_of(whole, ranks) if config else whole
    engine = DeepSpeedEngine(policy, CLIPPED, config, ranks) if config else TorchEngine(policy.model, CLIPPED)
    learner = Learner(policy, engine, make("grpo"), CLIPPED, seed=0, clock=Clock("cpu"), updates=2)
    bad = {"on": False}
    last = policy.model.base_model.layers[1]
    last.register_full_backward_hook(
        lambda module, into, out: tuple(x * torch.inf for x in into) if bad["on"] else into
    )
    found: dict = {"weights": [], "counted": []}
    for fault in faults:
        learner.guard = Guard(FAULTS.get(fault, CALM))
        experience, first = mine, ranks.rank == 0
        if fault == "nan" and first:
            before = replace(mine.before, advantage=mine.before.advantage * torch.nan)
            experience = replace(mine, before=before)
        bad["on"] = fault == "inf" and first
        step(learner, experience)
        found["weights"].append(weights(engine, policy))
        found["counted"].append(learner.guard.metrics())
    return found


def undisturbed(out: Path) -> None:
    """Write OUT/plain-<rank>.pt: weights after each of three updates."""
    torch.set_num_threads(1)
    ranks = join("cpu")
    found = {name: updates(engine, ranks, ("", "", ""))["weights"] for name, engine in ENGINES.items()}
    torch.save(found, out / f"plain-{ranks.rank}.pt")
    leave(0)


def main(out: Path, *engines: str) -> None:
    """Write OUT/found-<rank>.pt: what the guard did under these engines."""
    torch.set_num_threads(1)
    ranks = join("cpu")
    found = {name: updates(ENGINES[name], ranks, ("limit", "", "nan", "", "inf", "")) for name in engines}
    torch.save(found, out / f"found-{ranks.rank}.pt")
    leave(0)


def roll_back(out: Path, config: TrainConfig, stage: str) -> None:
    """Train a run under a ZeRO stage that is rolled back, in OUT/<stage>."""
    torch.set_num_threads(1)
    join("cpu")
    Trainer._train_step = breaks_once(Trainer._train_step)
    run = replace(config, out=str(out / stage), engine=STAGES[stage], guard=GuardConfig(non_finite="roll_back"))
    assert train_rank(run, resuming=False) == (0, f"done: {run.out}")
    leave(0)


def breaks_once(plain):
    """A step whose loss is NaN on the second rank only, in the third step, before the run was rolled back."""

    def train_step(trainer: Trainer):
        forward = trainer.policy.loss
        if trainer.step == 2 and not trainer.roll_backs and trainer.ranks.rank == 1:

            def loss(*args):
                value, stats = forward(*args)
                return value * torch.nan, stats

            trainer.policy.loss = loss
        return plain(trainer)

    return train_step
