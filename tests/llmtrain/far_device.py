"""Training on a device that is not the CPU, where there is none: its tensors are the CPU's, and say that they are far.

python far_device.py MODEL        trains with several settings far and near; for each the largest difference, as JSON
python far_device.py MODEL waits  where a micro-batch waits for the device, and how many operations it has, as JSON

As on a GPU, an operation on tensors of both devices is an error, but for CPU tensors of no dimension and for indices.
"""

import dataclasses
import json
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

from entrostat.settings.field_types import merge
from llmtrain.policy.engine import TorchEngine
from llmtrain.policy.policy import Policy
from llmtrain.settings.config import EvalConfig, ModelConfig, OptimConfig, RolloutConfig, TaskConfig, TrainConfig
from llmtrain.training.trainer import Trainer

backend_registration._setup_privateuseone_for_python_backend("far")
FAR, NEAR = torch.device("far:0"), torch.device("cpu")
aten = torch.ops.aten
MOVES = (aten.copy_.default, aten._to_copy.default)
INDEXES = (aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default)
ASKS = (aten.nonzero.default, aten._local_scalar_dense.default, aten.equal.default, aten.masked_select.default)
COUNT: Counter = Counter()
MAKERS = {
    *(torch.empty, torch.zeros, torch.ones, torch.full, torch.arange, torch.rand, torch.tensor, torch.as_tensor),
    *(torch.empty_like, torch.zeros_like, torch.ones_like, torch.full_like, torch.scalar_tensor, torch.linspace),
    *(torch.Tensor.new_empty, torch.Tensor.new_zeros, torch.Tensor.new_ones, torch.Tensor.new_full),
}


WAITS: Counter | None = None
"""Places in the code where the host has waited for the device, while they are counted."""


def wait() -> None:
    if WAITS is not None:
        ours = [frame for frame in traceback.extract_stack() if "/llmtrain/llmtrain/" in frame.filename]
        WAITS[f"{Path(ours[-1].filename).name}: {ours[-1].line}" if ours else "elsewhere"] += 1


class Far(torch.Tensor):
    """A tensor on the far device; `near` holds its numbers."""

    @staticmethod
    def __new__(cls, near):
        like = {"strides": near.stride(), "storage_offset": near.storage_offset(), "dtype": near.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, near.shape, device=FAR, **like)

    def __init__(self, near) -> None:
        self.near = near

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        indexed = func in INDEXES and isinstance(args[0], Far)  # a GPU takes indices of the CPU
        if func not in MOVES and not indexed and any(not isinstance(x, Far) and x.ndim for x in tensors):
            raise RuntimeError(f"{func} of tensors on two devices: {[tuple(x.shape) for x in tensors]}")
        asked = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.device)]
        if func in ASKS or (asked and asked[0].type != "far"):
            wait()
        COUNT["operations"] += 1
        args, kwargs = tree_map(nearby, (args, kwargs or {}))
        found = func(*args, **kwargs)
        if asked and asked[0].type != "far":
            return found
        same = {id(x.near): x for x in tensors if isinstance(x, Far)}  # written in place
        return tree_map(
            lambda x: (same[id(x)] if id(x) in same else Far(x)) if isinstance(x, torch.Tensor) else x, found
        )


def nearby(x):
    if isinstance(x, torch.device):
        return NEAR
    return x.near if isinstance(x, Far) else x


class Send(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return Far(x.detach().clone())

    @staticmethod
    def backward(ctx, gradient):
        return gradient.near


ASKING = (torch.Tensor.tolist, torch.Tensor.item, torch.Tensor.__bool__, torch.Tensor.__int__, torch.Tensor.__float__)


class FarDevice(TorchFunctionMode):
    """A context in which tensors can be made on the far device and moved to it."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in ASKING:
            if isinstance(args[0], Far):
                wait()
            return func(nearby(args[0]))
        if func is torch.Tensor.numpy and isinstance(args[0], Far):
            raise TypeError("a far tensor is no array: copy it to the CPU first")
        if func is torch.Tensor.new_tensor and isinstance(args[0], Far):
            return Far(torch.tensor(args[1], dtype=args[0].dtype))
        if func in MAKERS and is_far(kwargs.get("device")):
            return Far(func(*map(nearby, args), **(kwargs | {"device": NEAR})))
        if func is torch.Tensor.to and not isinstance(args[0], Far):
            asked = [*args[1:], *kwargs.values()]
            if any(is_far(x) or isinstance(x, Far) for x in asked):
                if not kwargs.get("non_blocking"):
                    wait()
                dtype = next(
                    (
                        x if isinstance(x, torch.dtype) else x.dtype
                        for x in asked
                        if hasattr(x, "dtype") or isinstance(x, torch.dtype)
                    ),
                    args[0].dtype,
                )
                return Send.apply(func(args[0], dtype))
        return func(*args, **kwargs)


def is_far(device) -> bool:
    return isinstance(device, str | torch.device) and torch.device(device).type == "far"


def move(module, *args, near=torch.nn.Module.to, **kwargs):
    """Stands for nn.Module.to, which wants to write into storage; tied parameters stay tied."""
    if not any(map(is_far, args)):
        return near(module, *args, **kwargs)
    moved: dict = {}
    for part in module.modules():
        for name, x in part._parameters.items():
            if x is not None and not isinstance(x, Far):
                moved.setdefault(x, torch.nn.Parameter(Far(x.detach().clone()), requires_grad=x.requires_grad))
                part._parameters[name] = moved[x]
        for name, x in part._buffers.items():
            if x is not None and not isinstance(x, Far):
                part._buffers[name] = Far(x.clone())
    return module


def copy(source, target, non_blocking=False):
    nearby(target).copy_(nearby(source))
    return target


def install() -> None:
    """What torch asks of a device below its own dispatch."""
    library = torch.library.Library("aten", "IMPL")
    library.impl(
        "empty_strided",
        lambda size, stride, dtype=None, **rest: Far(torch.empty_strided(size, stride, dtype=dtype)),
        "PrivateUse1",
    )
    library.impl(
        "empty.memory_format", lambda size, dtype=None, **rest: Far(torch.empty(size, dtype=dtype)), "PrivateUse1"
    )
    library.impl("_local_scalar_dense", lambda x: x.near.item(), "PrivateUse1")
    library.impl("_copy_from", copy, "PrivateUse1")
    install.library = library  # it lasts as long as somebody holds it
    torch.nn.Module.to = move


CASES = {
    "packed": {"optim": {"layout": "packed"}, "controller": "entropy_bonus+steer"},
    "shared": {"optim": {"layout": "shared", "ppo_epochs": 2}, "controller": "thermostat", "target": 0.4},
    "prime": {"advantage": "prime", "controller": "clip_cov+kl_ref+stare", "rollout": {"filter_groups": True}},
    "lora": {"model": {"lora_rank": 4}, "controller": "truncated_entropy_bonus", "rollout": {"max_num_seqs": 8}},
    "proxy": {"controller": "lp_reg+siren", "controller_args": {"share": 0.5}},
    "opefo": {
        "controller": "opefo",
        "advantage": "reinforce_pp",
        "reward": {"overlong_buffer": 4, "length_weight": 0.1},
    },
}


def train(config: TrainConfig, model: Path) -> dict:
    found: dict = {}
    Trainer(config, model).run(lambda step, metrics: found.update({(step, k): v for k, v in metrics.items()}))
    return found


def mixed() -> str:
    """What becomes of an operation on both devices."""
    with FarDevice():
        try:
            return str(torch.ones(2, device="far") + torch.ones(2))
        except RuntimeError as error:
            return str(error)


def settings(model: Path) -> TrainConfig:
    return TrainConfig(
        steps=2,
        model=ModelConfig(path=str(model)),
        task=TaskConfig(train_problems=64, test_problems=8),
        rollout=RolloutConfig(prompts=8, n=4, max_new_tokens=12),
        optim=OptimConfig(lr=1e-3, mini_batch_size=4, micro_batch_tokens=256),
        eval=EvalConfig(every=1, k=2, samples=2),
        threads=1,
    )


class Watched:
    """A context in which micro-batches are looked at, from the loss to the end of its backward pass."""

    def __init__(self) -> None:
        self.passes: list[tuple[Counter, int]] = []
        """Places of waits, and operations, of each."""
        self.loss, self.backward = Policy.loss, TorchEngine.backward

    def __enter__(self) -> "Watched":
        Policy.loss = lambda policy, *args: self.look(policy, *args)
        TorchEngine.backward = lambda engine, loss: self.look_away(engine, loss)
        return self

    def __exit__(self, *error) -> None:
        Policy.loss, TorchEngine.backward = self.loss, self.backward

    def look(self, policy, *args):
        global WAITS
        WAITS, COUNT["operations"] = Counter(), 0
        return self.loss(policy, *args)

    def look_away(self, engine, loss) -> None:
        global WAITS
        self.backward(engine, loss)
        self.passes.append((WAITS, COUNT["operations"]))
        WAITS = None


def waits(model: Path) -> dict:
    """Waits and operations of a forward and backward pass in each layout."""
    found = {}
    for layout in ("packed", "padded", "shared"):
        changes = {"layout": layout, "micro_batch_tokens": 64}
        config = merge(settings(model), {"optim": changes, "steps": 1, "controller": "entropy_bonus"})
        with tempfile.TemporaryDirectory() as folder, FarDevice(), Watched() as watched:
            config = dataclasses.replace(config, out=folder)
            object.__setattr__(config, "device", "far")
            train(config, model)
        passes = watched.passes
        found[layout] = {"passes": len(passes), "waits": dict(sum((x for x, _ in passes), Counter()))}
        found[layout]["operations"] = max(count for _, count in passes)
    return found


def differences(model: Path) -> dict:
    base = settings(model)
    worst = {"mixed": mixed()}
    with tempfile.TemporaryDirectory() as folder:
        for name, changes in CASES.items():
            config = merge(base, changes)
            near = train(dataclasses.replace(config, out=f"{folder}/{name}-near"), model)
            there = dataclasses.replace(config, out=f"{folder}/{name}-far")
            object.__setattr__(there, "device", "far")  # settings know cpu and cuda alone
            with FarDevice():
                far = train(there, model)
            keys = [
                k
                for k in near
                if not k[1].startswith(("time/", "tokens_per_second", "mismatch/")) and near[k] == near[k]
            ]
            worst[name] = [len(keys), *max((abs(near[k] - far[k]) / (abs(near[k]) + 1e-3), k[1]) for k in keys)]
    return worst


if __name__ == "__main__":
    install()
    print(json.dumps((waits if sys.argv[2:] == ["waits"] else differences)(Path(sys.argv[1]))))
