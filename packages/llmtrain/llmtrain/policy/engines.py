"""Factory of a run's engine."""

from dataclasses import replace

import torch

from ..process.ranks import join
from ..settings.config import OptimConfig, TrainConfig
from .compiled import compile_layers
from .engine import Engine, TorchEngine
from .logits import family, sample
from .policy import Policy
from .precision import compute_in_bf16, is_reached


def make_engine(
    config: TrainConfig, policy: Policy, optim: OptimConfig, updates: int = 0, alone: bool = False
) -> Engine:
    """Return the engine that a run names, or the torch engine if `alone`.

    Applies gradient checkpointing, compilation (unless `alone`) and the torch engine's bf16 if they are set.

    updates: optimizer steps of the run, for the learning-rate schedule.
    deepspeed joins the process group that the environment describes.
    """
    if config.engine.gradient_checkpointing:
        policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    if config.engine.torch_compile and not alone:
        compile_layers(policy.model)
    if config.engine.name == "torch" and config.engine.bf16:
        _cast(policy)
    if alone or config.engine.name == "torch":
        return TorchEngine(policy.model, optim, updates)
    from .deepspeed_engine import DeepSpeedEngine  # deepspeed may not be installed

    ranks = join(config.device, config.engine.ddp_timeout)
    return DeepSpeedEngine(policy, optim, config.engine, ranks, updates)


def place(config: TrainConfig, policy: Policy) -> None:
    """Put a policy that is only evaluated, not trained, on the device: under ZeRO-3 divided over ranks, else whole."""
    if config.engine.name == "deepspeed" and config.engine.zero_stage == 3:
        from .deepspeed_engine import divide

        divide(policy, replace(config.engine, offload_optimizer=False), torch.device(config.device))
        return
    policy.to(config.device)
    if config.engine.name == "torch" and config.engine.bf16:
        _cast(policy)


def _cast(policy: Policy) -> None:
    """Make a policy's body multiply in bf16. Raises ValueError if the model's own passes do not go through it."""
    model, training = policy.model, policy.model.training
    model.eval()
    compute_in_bf16(model)
    if not is_reached(model, sample(model)):
        raise ValueError(f"engine.bf16 does not reach the layers of {family(model)}: train without it")
    model.train(training)
