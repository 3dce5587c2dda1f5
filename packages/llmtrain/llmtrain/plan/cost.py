"""Time of a rollout step by part, and cost of the whole run."""

from dataclasses import dataclass
from functools import cached_property

from .architecture import BF16
from .derived import Layout, lay_out
from .efficiency import BANDWIDTH_SHARE, IPC_PASSES, LINK_SHARE
from .fixes import check_fit
from .memory import Memory
from .plan_config import PlanConfig
from .rollout_time import Rollout, simulate
from .training_time import compute_seconds, exchange_seconds, link, optimizer_seconds


@dataclass(frozen=True)
class RunPlan:
    """Valid configuration with its memory, time and cost. Create it with `make_plan`."""

    layout: Layout
    memory: Memory

    @property
    def config(self) -> PlanConfig:
        return self.layout.config

    @cached_property
    def rollout(self) -> Rollout:
        return simulate(self.layout, self.memory)

    @cached_property
    def training(self) -> dict[str, float]:
        """Seconds for the updates of a rollout step, by part."""
        parts = compute_seconds(self.layout)
        parts["exchange of gradients and weights"] = exchange_seconds(self.layout, sum(parts.values()))
        parts["optimizer"] = optimizer_seconds(self.layout)
        return parts

    @cached_property
    def sync(self) -> float:
        """Seconds for sending new weights to the engines: within each GPU, from GPU to GPU, or by the object store."""
        layout, gpu = self.layout, self.layout.gpu
        size = BF16 * layout.model.params
        gather = size * (layout.ranks - 1) / layout.ranks / link(layout) if self.config.zero_stage == 3 else 0.0
        if self.config.offload_param:
            gather += size / layout.ranks / (gpu.pcie * LINK_SHARE)
        if self.config.weight_sync == "ipc":
            return gather + IPC_PASSES * size / (gpu.bandwidth * BANDWIDTH_SHARE)
        between = LINK_SHARE * (gpu.nvlink if layout.nodes == 1 else gpu.network)
        if self.config.weight_sync == "nccl":
            return gather + size / between
        across = size / between if layout.nodes > 1 else 0.0
        return gather + across + size / (1e9 * self.config.store_gb_per_s)

    @property
    def overlapped(self) -> bool:
        """True if rollout and training run at the same time."""
        return not self.config.colocated and self.config.staleness > 0

    @property
    def seconds(self) -> float:
        """Seconds for a rollout step."""
        rollout, training = self.rollout.total, sum(self.training.values())
        return (max(rollout, training) if self.overlapped else rollout + training) + self.sync

    @property
    def phases(self) -> dict[str, float]:
        """Seconds for rollout, training and weight sync."""
        return {"rollout": self.rollout.total, "training": sum(self.training.values()), "weight sync": self.sync}

    @property
    def gpu_hours(self) -> float:
        """GPU-hours of the whole run."""
        return self.seconds * self.config.steps * self.config.gpus / 3600

    @property
    def idle_share(self) -> float:
        """Share of the GPU time in which engines wait for the trainer or the trainer for engines; 0 if colocated."""
        if self.config.colocated:
            return 0.0
        layout, phases = self.layout, self.phases
        busy = layout.rollout_gpus * phases["rollout"] + layout.ranks * phases["training"]
        return 1 - (busy / self.config.gpus + self.sync) / self.seconds

    @property
    def tokens_per_second(self) -> float:
        """Response tokens per second over the whole step, all GPUs."""
        return self.layout.response_tokens / self.seconds

    @property
    def decode_tokens_per_second(self) -> float:
        """Response tokens per second and GPU during the rollout."""
        return self.layout.response_tokens / self.rollout.total / self.layout.rollout_gpus

    @property
    def train_utilisation(self) -> float:
        """MFU of the training phase: 6 FLOP per parameter and trained token, divided by the peak of all ranks."""
        flops = 6 * self.layout.model.params * self.layout.tokens * self.config.live_share * self.config.ppo_epochs
        return flops / (self.layout.ranks * self.layout.gpu.flops * self.phases["training"])


def make_plan(config: PlanConfig) -> RunPlan:
    """Return the plan of a configuration. Raises ValueError with the fix in one line if it cannot work."""
    layout = lay_out(config)
    memory = Memory(layout)
    check_fit(memory)
    return RunPlan(layout, memory)
