"""Runs by name: what --preset begins with."""

from .config import (
    EngineConfig,
    EvalConfig,
    ModelConfig,
    OptimConfig,
    RolloutConfig,
    SFTConfig,
    TaskConfig,
    TopologyConfig,
    TrainConfig,
)

PRESETS: dict[str, TrainConfig] = {
    "math-cpu": TrainConfig(
        out="runs/math",
        model=ModelConfig(max_position_embeddings=1280),
        task=TaskConfig(name="files"),
        sft=SFTConfig(steps=0),
        rollout=RolloutConfig(prompts=8, n=4, max_new_tokens=64),
        optim=OptimConfig(layout="shared", mini_batch_size=4),
        eval=EvalConfig(every=0),
    ),
    "countdown-cpu": TrainConfig(out="runs/countdown", optim=OptimConfig(layout="shared")),
    "countdown-ray": TrainConfig(
        out="runs/countdown-ray",
        nproc=2,
        engine=EngineConfig(name="deepspeed", zero_stage=2),
        optim=OptimConfig(layout="shared"),
        rollout=RolloutConfig(name="vllm"),
        topology=TopologyConfig(name="ray"),
    ),
}


def get_preset(name: str) -> TrainConfig:
    """The preset called `name`; ValueError lists the names there are."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; choose from {', '.join(PRESETS)}")
    return PRESETS[name]
