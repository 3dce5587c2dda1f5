"""The work of every rank in the warm-up tests: the same warm-up under several stages, then one that is written.

Rank 0 writes OUT/found.pt and OUT/model.
"""

from pathlib import Path

import torch

from llmtrain.policy.deepspeed_engine import DeepSpeedEngine
from llmtrain.policy.engine import Engine
from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.process.ranks import DistRanks, join, leave
from llmtrain.settings.config import (
    DataConfig,
    EngineConfig,
    ModelConfig,
    OptimConfig,
    SFTConfig,
    TaskConfig,
    TrainConfig,
)
from llmtrain.training.supervised import encode, optim, warm_up
from llmtrain.training.warmup import sft_run

EXAMPLES = [("1=", "22"), ("2=", "3"), ("3=", "111111111"), ("11=", "2"), ("12=", "33131"), ("1313=", "2")]
STEPS, BATCH, LR = 6, 5, 3e-3
"""Five examples a step: one rank has three of them, the other two."""


def warmed(engine_of, budget: int = 8192, layout: str = "packed") -> dict[str, torch.Tensor]:
    """Losses and weights after the same warm-up by the engine that `engine_of(policy, *settings)` makes."""
    tokenizer = build_char_tokenizer("123=")
    model = build_tiny(len(tokenizer), hidden=32, layers=1, heads=2, kv_heads=2, intermediate=32)
    policy = Policy(model, layout=layout)
    engine: Engine = engine_of(policy, optim(LR, STEPS), STEPS)
    settings = {"steps": STEPS, "batch_size": BATCH, "micro_batch_tokens": budget, "seed": 3}
    losses = warm_up(policy, engine, encode(tokenizer, EXAMPLES), **settings)
    with engine.whole():
        weights = torch.cat([p.detach().flatten().clone() for p in model.parameters()])
    return {"losses": torch.tensor(losses, dtype=torch.float64), "weights": weights}


def configuration(out: str, engine: EngineConfig = EngineConfig()) -> TrainConfig:  # noqa: B008
    return TrainConfig(
        out=out,
        model=ModelConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32),
        task=TaskConfig(train_problems=32, test_problems=4),
        data=DataConfig(),
        sft=SFTConfig(examples=40, steps=4, batch_size=7),
        optim=OptimConfig(layout="packed", micro_batch_tokens=64),
        engine=engine,
    )


def stage(policy: Policy, settings, updates, ranks: DistRanks, number: int) -> DeepSpeedEngine:
    return DeepSpeedEngine(policy, settings, EngineConfig(name="deepspeed", zero_stage=number), ranks, updates)


def main(out: Path) -> None:
    torch.set_num_threads(1)
    ranks = join("cpu")
    found = {
        f"zero{number}": warmed(lambda p, o, r, n=number: stage(p, o, r, ranks, n), budget=20) for number in range(4)
    }
    if ranks.rank == 0:
        torch.save(found, out / "found.pt")
    sft_run(configuration(str(out / "model"), EngineConfig(name="deepspeed", zero_stage=2)))
    leave(0)
