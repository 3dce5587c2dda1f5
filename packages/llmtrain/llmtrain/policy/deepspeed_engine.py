"""DeepSpeed engine: data-parallel ranks, ZeRO 0 to 3, offload to the CPU, bf16 with fp32 master weights.

    stage    split over ranks                        every rank keeps
    0        nothing                                 weights, gradients, optimizer states
    1        optimizer states                        weights, gradients
    2        optimizer states, gradients             weights
    3        optimizer states, gradients, weights    the running module; the head's weight only while the head runs

Losses of ranks add up, as in a plan. DeepSpeed averages gradients, so each loss is first multiplied by the number of
ranks.
"""

import contextlib
import logging
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..process.ranks import DistRanks
from ..settings.config import EngineConfig, OptimConfig
from .engine import NonFiniteError, adamw, always, clip, forget, set_rates
from .optimizer_pieces import MASTER, MOMENTS, Piece, held_pieces, make_moments, read_pieces, write_pieces
from .policy import Policy
from .stale_builds import release

TAG = "deepspeed"
"""Subfolder of a checkpoint of an earlier version that DeepSpeed wrote."""
BUCKET = 200_000_000
"""Upper limit for the number of gradients or weights that are sent between ranks at once."""


def import_deepspeed() -> Any:
    """Return the module `deepspeed` without its all-reduce in shared memory, which only its tensor parallelism uses.

    On a CPU DeepSpeed would compile that operator at its first start on a machine, which takes a minute, and allocate
    66 MiB per rank that it never unlinks.
    """
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed


def settings(config: EngineConfig, optim: OptimConfig, parameters: int, device: torch.device) -> dict[str, Any]:
    """Return DeepSpeed's configuration for a model with this number of parameters.

    In stage 0 this engine clips gradients, because DeepSpeed would neither report the norm nor refuse one that is not
    finite. `overlap_comm` needs DeepSpeed 0.19.8, the oldest that is installed here: before it stages 1 and 2 read
    buckets whose copies had not ended (deepspeedai/DeepSpeed, issue 8061).
    """
    bucket = min(parameters + parameters % 2, BUCKET)  # DeepSpeed wants an even number
    zero: dict[str, Any] = {
        "stage": config.zero_stage,
        "reduce_bucket_size": bucket,
        "allgather_bucket_size": bucket,
        "overlap_comm": config.zero_stage > 0 and device.type != "cpu",
    }
    if config.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu"}
    if config.offload_param:
        zero["offload_param"] = {"device": "cpu"}
    made = {
        "train_micro_batch_size_per_gpu": 1,  # this engine makes micro-batches: DeepSpeed sees passes and ends of steps
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
    """Return `base` with the nested dictionary `changes` merged into it."""
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = _over(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def divide(policy: Policy, config: EngineConfig, device: torch.device) -> None:
    """Divide a policy that is not trained over the ranks, as ZeRO-3 does; all ranks must then use it together."""
    options = settings(config, OptimConfig(), sum(p.numel() for p in policy.parameters()), device)
    spread(policy, options, device)
    import_deepspeed().initialize(model=policy, config=options, dist_init_required=False)


def spread(policy: Policy, options: dict[str, Any], device: torch.device) -> None:
    """Under ZeRO-3 divide a policy's weights over the ranks, one by one.

    DeepSpeed by itself would first put all of them on the GPU of every rank, where they may not fit.
    """
    if options["zero_optimization"]["stage"] == 3:
        if options["bf16"]["enabled"]:  # DeepSpeed does not cast divided weights
            for parameter in policy.parameters():
                parameter.data = parameter.bfloat16()
        import_deepspeed().zero.Init(module=policy, config_dict_or_path=options)
        for buffer in policy.buffers():
            buffer.data = buffer.to(device)


def check_parts(folder: Path, stage: int, ranks: int) -> None:
    """Raise ValueError unless a checkpoint that DeepSpeed wrote has the files of all ranks; it stops without a name."""
    wanted = {"*model_states.pt": ranks if stage == 3 else 1, "*optim_states.pt": ranks if stage else 0}
    for files, count in wanted.items():
        if (there := len(list(folder.glob(files)))) < count:
            raise ValueError(
                f"{folder} has {there} of {count} files {files}: put them back, or remove {folder.parent} to go on "
                "from an earlier checkpoint"
            )


class DeepSpeedEngine:
    """Engine of a rank under DeepSpeed. Gradients add up over `backward` calls and ranks until `step`.

    All ranks make the same number of passes, which `begin` returns; a rank without tokens makes empty passes. After a
    NonFiniteError the weights and moments are those from before the step.
    """

    def __init__(
        self, policy: Policy, optim: OptimConfig, config: EngineConfig, ranks: DistRanks, updates: int = 0
    ) -> None:
        os.environ.setdefault("DS_ACCELERATOR", ranks.device.type)
        os.environ.setdefault("LOCAL_SIZE", os.environ.get("LOCAL_WORLD_SIZE", "1"))
        deepspeed = import_deepspeed()
        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", r".*is deprecated. Please use", FutureWarning, "torch.distributed")
        self.ranks = ranks
        self.allows: Callable[[float], bool] = always
        self.config = config
        self.optim = optim
        self.max_grad_norm = optim.max_grad_norm
        parameters = [parameter for parameter in policy.parameters() if parameter.requires_grad]
        self.optimizer, self.scheduler = adamw(parameters, optim, updates)
        if os.environ.get("LOCAL_RANK", "0") == "0":
            release()
        ranks.barrier()
        options = settings(config, optim, sum(p.numel() for p in parameters), ranks.device)
        spread(policy, options, ranks.device)
        self.deepspeed, *_ = deepspeed.initialize(
            model=policy, optimizer=self.optimizer, config=options, dist_init_required=False
        )
        policy.enter = self.deepspeed.forward
        self.parameters = parameters
        self.passes = 0
        self.loss = torch.zeros((), dtype=torch.float64, device=ranks.device)
        self.norm = math.nan
        self.takes: bool | None = None
        """Decision on the present step; None before it."""
        self.hidden: list[tuple[Tensor, Tensor | None]] = []
        self.optimizer.register_step_pre_hook(lambda *_: self._decide())
        self.optimizer.register_step_post_hook(lambda *_: self._give_back())

    @property
    def lr(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def begin(self, slices: int) -> int:
        self.passes = self.ranks.most(slices)
        self.loss.zero_()
        return self.passes

    def backward(self, loss: Tensor) -> None:
        """Accumulate gradients; if the loss is not finite, `step` raises on all ranks."""
        self.passes -= 1
        self.loss += loss.detach()
        self.deepspeed.set_gradient_accumulation_boundary(self.passes == 0)
        self.deepspeed.backward(loss * self.ranks.size)
        if self.passes:
            self.deepspeed.step()  # changes no weights before the last pass

    def step(self) -> float:
        assert self.passes == 0, f"{self.passes} of the announced passes are missing"
        loss = float(self.ranks.total(self.loss))
        self.norm, self.takes = math.nan, None if math.isfinite(loss) else False
        self.deepspeed.step()  # also forgets the gradients
        if self.config.zero_stage in (1, 2) and not self._steps():
            self._zero._hp_optimizer_states_linked = False  # there are no moments yet
        if not math.isfinite(loss):
            where = self.ranks.gather([] if math.isfinite(float(self.loss)) else [self.ranks.rank])
            raise NonFiniteError(f"loss is {loss} on rank {', '.join(map(str, where))}")
        norm = self.norm if self.config.zero_stage == 0 else float(self.deepspeed.get_global_grad_norm())
        if not math.isfinite(norm):  # DeepSpeed has not changed the weights
            raise NonFiniteError(f"gradient norm is {norm}")
        if self.takes:
            self.scheduler.step()
        return norm

    def discard(self) -> None:
        """No-op: `step` has forgotten the gradients."""

    def forget(self) -> None:
        forget(self.optimizer)

    def _decide(self) -> None:
        """Decide before AdamW's step whether it is taken; if not, hide the gradients, without which AdamW does nothing.

        Stage 3 divides a step into several of AdamW's. In stage 0 every rank holds the sum of all gradients, and this
        method clips them.
        """
        if self.config.zero_stage == 0:
            self.norm = clip(self.parameters, self.max_grad_norm)
        if self.takes is None:
            norm = float(self.deepspeed.optimizer._global_grad_norm) if self.config.zero_stage else self.norm
            self.takes = math.isfinite(norm) and self.allows(norm)
        if not self.takes:
            weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
            self.hidden = [(weight, weight.grad) for weight in weights]
            for weight in weights:
                weight.grad = None

    def _give_back(self) -> None:
        """Give the hidden gradients back, whose memory DeepSpeed may use again."""
        for weight, gradient in self.hidden:
            weight.grad = gradient
        self.hidden = []

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
        return {"scheduler": self.scheduler.state_dict(), "bf16": self.config.bf16, "steps": self._steps()}

    def _steps(self) -> int:
        """Return the number of steps that AdamW has taken; it has no moments before the first."""
        return max((int(state["step"]) for state in self.optimizer.state.values() if state), default=0)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state. Raises ValueError if the checkpoint has another engine or precision.

        Checkpoints of earlier versions must also have the same number of ranks and ZeRO stage.
        """
        if "optimizer" in state:
            raise ValueError("the checkpoint has engine.name torch, this run has deepspeed: use the same")
        mine = {"world_size": self.ranks.size, "zero_stage": self.config.zero_stage, "bf16": self.config.bf16}
        for name, here in mine.items():
            if state.get(name, here) != here:
                raise ValueError(f"the checkpoint has {name} {state[name]}, this run has {here}: use the same")
        self.scheduler.load_state_dict(state["scheduler"])
        if state.get("steps"):
            make_moments(self._zero, self.optimizer, self.config.zero_stage, state["steps"])

    def save_shards(self, folder: Path) -> None:
        if self.config.zero_stage or self.ranks.rank == 0:
            write_pieces(self._pieces(), folder, self.ranks.rank)

    def load_shards(self, folder: Path) -> None:
        if (folder / TAG).is_dir():
            check_parts(folder / TAG, self.config.zero_stage, self.ranks.size)
            self.deepspeed.load_checkpoint(str(folder), tag=TAG)
        else:
            read_pieces(self._pieces(), folder)
        set_rates(self.optimizer, self.scheduler, self.optim)

    @property
    def _zero(self) -> Any:
        """DeepSpeed's ZeRO optimizer; AdamW in stage 0."""
        return self.deepspeed.optimizer if self.config.zero_stage else self.optimizer

    def _pieces(self) -> Iterator[Piece]:
        """Return the pieces of the optimizer's state that this rank holds."""
        states = (MASTER,) * self.config.bf16 + MOMENTS * (self._steps() > 0)
        return held_pieces(self.deepspeed.module, self._zero, states)
