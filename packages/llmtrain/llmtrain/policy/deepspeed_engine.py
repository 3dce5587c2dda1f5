"""The DeepSpeed engine: data-parallel ranks, ZeRO 0 to 3, offload to the CPU, bf16 with fp32 master weights.

    stage    split over ranks                        every rank keeps
    0        nothing                                 weights, gradients, optimizer states
    1        optimizer states                        weights, gradients
    2        optimizer states, gradients             weights
    3        optimizer states, gradients, weights    the module at work; the head's weight only while the head runs

Losses of the ranks add up, as they do within a plan. DeepSpeed averages gradients, so each loss is multiplied by the
number of ranks first.
"""

import contextlib
import logging
import math
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..process.local_ranks import forget_shared_memory
from ..process.ranks import DistRanks
from ..settings.config import EngineConfig, OptimConfig
from .engine import NonFiniteError, Rate, adamw, clip, set_rates
from .policy import Policy
from .stale_builds import release

TAG = "deepspeed"
"""Subfolder of a checkpoint that DeepSpeed writes to."""
BUCKET = 200_000_000
"""Most gradients or weights, in numbers, that travel between ranks at once."""


def settings(config: EngineConfig, optim: OptimConfig, parameters: int, device: torch.device) -> dict[str, Any]:
    """The configuration that DeepSpeed reads, for a model of so many parameters.

    Stage 0 is clipped by this engine: DeepSpeed would neither tell the norm nor refuse one that is not finite.
    Stages 1 and 2 reduce gradients after the backward pass and not during it: reports say that `overlap_comm` reads
    buckets there before all copies into them have ended (deepspeedai/DeepSpeed, issue 8061).
    """
    bucket = min(parameters + parameters % 2, BUCKET)  # DeepSpeed wants an even number
    zero: dict[str, Any] = {
        "stage": config.zero_stage,
        "reduce_bucket_size": bucket,
        "allgather_bucket_size": bucket,
        "overlap_comm": config.zero_stage == 3 and device.type != "cpu",
    }
    if config.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu"}
    if config.offload_param:
        zero["offload_param"] = {"device": "cpu"}
    made = {
        "train_micro_batch_size_per_gpu": 1,  # micro-batches are ours: DeepSpeed sees passes, and where a step ends
        "gradient_accumulation_steps": 1,
        "gradient_clipping": optim.max_grad_norm if config.zero_stage else 0.0,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "bf16": {"enabled": config.bf16},
        "data_types": {"grad_accum_dtype": "fp32"},
        "communication_data_type": "fp32",
        "zero_optimization": zero,
    }
    return _over(made, config.deepspeed)


def _over(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with the nested dictionary `changes` laid over it."""
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = _over(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def divide(policy: Policy, config: EngineConfig, device: torch.device) -> None:
    """Divide a policy that is not trained over the ranks, as ZeRO-3 does; all of them ask it together."""
    import deepspeed

    options = settings(config, OptimConfig(), sum(p.numel() for p in policy.parameters()), device)
    spread(policy, options, device)
    deepspeed.initialize(model=policy, config=options, dist_init_required=False)


def spread(policy: Policy, options: dict[str, Any], device: torch.device) -> None:
    """Under ZeRO-3 divide a policy's weights over the ranks, one by one.

    DeepSpeed does so by itself, but puts all of them on the GPU of every rank first, which may not hold them.
    """
    import deepspeed

    if options["zero_optimization"]["stage"] == 3:
        if options["bf16"]["enabled"]:  # DeepSpeed casts no weights that are divided
            for parameter in policy.parameters():
                parameter.data = parameter.bfloat16()
        deepspeed.zero.Init(module=policy, config_dict_or_path=options)
        for buffer in policy.buffers():
            buffer.data = buffer.to(device)


class DeepSpeedEngine:
    """Gradients add up over `backward` calls and ranks until `step`; the policy's loss goes through DeepSpeed.

    All ranks make the same number of passes: `begin` says how many, and a rank that has no tokens left makes them with
    none. After a NonFiniteError the weights are sound, the gradients are not: load a checkpoint to go on.
    """

    def __init__(
        self, policy: Policy, optim: OptimConfig, config: EngineConfig, ranks: DistRanks, rate: Rate | None = None
    ) -> None:
        os.environ.setdefault("DS_ACCELERATOR", ranks.device.type)
        os.environ.setdefault("LOCAL_SIZE", os.environ.get("LOCAL_WORLD_SIZE", "1"))
        import deepspeed

        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", r".*is deprecated. Please use", FutureWarning, "torch.distributed")
        self.ranks = ranks
        self.config = config
        self.optim = optim
        self.max_grad_norm = optim.max_grad_norm
        parameters = [parameter for parameter in policy.parameters() if parameter.requires_grad]
        self.optimizer, self.scheduler = adamw(parameters, optim, ranks.device, rate)
        if os.environ.get("LOCAL_RANK", "0") == "0":
            release()
        ranks.barrier()
        options = settings(config, optim, sum(p.numel() for p in parameters), ranks.device)
        spread(policy, options, ranks.device)
        self.deepspeed, *_ = deepspeed.initialize(
            model=policy, optimizer=self.optimizer, config=options, dist_init_required=False
        )
        ranks.barrier()
        forget_shared_memory(os.environ)  # all ranks have mapped it
        policy.enter = self.deepspeed.forward
        self.parameters = parameters
        self.passes = 0
        self.loss = torch.zeros((), dtype=torch.float64)
        if config.zero_stage == 0:
            self.optimizer.register_step_pre_hook(lambda *_: self._clip())

    def begin(self, slices: int) -> int:
        self.passes = self.ranks.most(slices)
        self.loss.zero_()
        return self.passes

    def backward(self, loss: Tensor) -> None:
        """Accumulate gradients; a loss that is not finite is told by `step`, to all ranks at once."""
        self.passes -= 1
        self.loss += loss.detach().cpu().double()
        self.deepspeed.set_gradient_accumulation_boundary(self.passes == 0)
        self.deepspeed.backward(loss * self.ranks.size)
        if self.passes:
            self.deepspeed.step()  # moves nothing before the last pass

    def step(self) -> float:
        assert self.passes == 0, f"{self.passes} of the announced passes are missing"
        loss = float(self.ranks.total(self.loss))
        if not math.isfinite(loss):
            raise NonFiniteError(f"loss is {loss}")
        self.deepspeed.step()
        norm = self.norm if self.config.zero_stage == 0 else float(self.deepspeed.get_global_grad_norm())
        if not math.isfinite(norm):  # DeepSpeed has not moved the weights
            raise NonFiniteError(f"gradient norm is {norm}")
        self.scheduler.step()
        return norm

    def _clip(self) -> None:
        """Before a step of stage 0, when every rank holds the sum of all gradients."""
        self.norm = clip(self.parameters, self.max_grad_norm)
        if not math.isfinite(self.norm):
            raise NonFiniteError(f"gradient norm is {self.norm}")

    def whole(self, parameters: Iterable[nn.Parameter] | None = None) -> contextlib.AbstractContextManager:
        if self.config.zero_stage < 3:
            return contextlib.nullcontext()
        if parameters is not None:
            from deepspeed.runtime.zero import GatheredParameters

            return GatheredParameters(list(parameters))
        from deepspeed.runtime.zero.stage3 import unwrap_model_for_generation

        return unwrap_model_for_generation(self.deepspeed)

    # State --------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "scheduler": self.scheduler.state_dict(),
            "world_size": self.ranks.size,
            "zero_stage": self.config.zero_stage,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError when the checkpoint is of another engine, number of ranks or stage."""
        if "optimizer" in state:
            raise ValueError("the checkpoint is of engine.name torch, this run of deepspeed: use the same")
        mine = {"world_size": self.ranks.size, "zero_stage": self.config.zero_stage}
        for name, here in mine.items():
            if state.get(name) != here:
                raise ValueError(f"the checkpoint is of {name} {state.get(name)}, this run of {here}: use the same")
        self.scheduler.load_state_dict(state["scheduler"])

    def save_shards(self, folder: Path) -> None:
        self.deepspeed.save_checkpoint(str(folder), tag=TAG, save_latest=False)

    def load_shards(self, folder: Path) -> None:
        path, _ = self.deepspeed.load_checkpoint(str(folder), tag=TAG)
        if path is None:
            raise ValueError(f"{folder / TAG} is not a whole DeepSpeed checkpoint")
        set_rates(self.optimizer, self.scheduler, self.optim)
