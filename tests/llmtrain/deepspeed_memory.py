"""What ranks of the DeepSpeed tests hold, and when weights that are divided are whole."""

import gc
from dataclasses import replace
from functools import partial

import torch
from deepspeed_scene import BF16, BUDGET, OPTIM, SMALL_BUCKETS, STAGES, experience_of, part_of, policy_of, step

from entrostat import make
from llmtrain.policy.deepspeed_engine import DeepSpeedEngine
from llmtrain.policy.engines import place
from llmtrain.policy.lora import adapter_weights, whole_weights
from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.process.clock import Clock
from llmtrain.settings.config import TrainConfig
from llmtrain.training.learner import Learner


def tensor_bytes() -> int:
    """Bytes of all tensors of this process."""
    gc.collect()
    found: dict[int, int] = {}
    for one in gc.get_objects():
        if isinstance(one, torch.Tensor) and one.device.type == "cpu":
            for tensor in (one, one.grad if one.is_leaf else None):
                if tensor is not None:
                    storage = tensor.untyped_storage()
                    found[storage.data_ptr()] = max(storage.nbytes(), found.get(storage.data_ptr(), 0))
    return sum(found.values())


def state_bytes(ranks) -> dict:
    """Under bf16, of a second step: bytes a parameter that this rank holds before the optimizer moves, and after it."""
    found, kept = {}, []
    for name, config in BF16.items():
        before = tensor_bytes()
        model = build_tiny(2000, hidden=128, layers=2, heads=2, kv_heads=2, intermediate=256).train().bfloat16()
        policy = Policy(model)
        count = sum(p.numel() for p in model.parameters())
        engine = WatchedEngine(policy, OPTIM, replace(config, deepspeed=SMALL_BUCKETS), ranks)
        learner = Learner(policy, engine, make("grpo"), OPTIM, seed=0, clock=Clock("cpu"), updates=2)
        experience = part_of(experience_of(policy), ranks)
        for _ in range(2):
            step(learner, experience)
        found[name] = [(size - before) / count for size in (engine.held, tensor_bytes())]
        kept.append(engine)  # none is let go while the others are counted
    return found


class WatchedEngine(DeepSpeedEngine):
    """Remembers what was held when its last step began."""

    held = 0

    def step(self) -> float:
        self.held = tensor_bytes()
        return super().step()


def head_status(ranks) -> list[tuple[str, bool]]:
    """Whether the head's weight is gathered, at points of a pass under ZeRO-3."""
    config = STAGES["zero3"]
    policy = policy_of(config)
    experience = part_of(experience_of(policy), ranks)
    engine = DeepSpeedEngine(policy, OPTIM, config, ranks)
    seen: list[tuple[str, bool]] = []
    weight = policy.head  # to ask a module for it during the pass would gather it

    def look(place: str) -> None:
        seen.append((place, weight.ds_status.name == "AVAILABLE"))

    layers = policy.model.base_model.layers
    layers[1].register_forward_hook(lambda *_: look("last layer"))
    layers[1].register_full_backward_hook(lambda *_: look("last layer, backward"))
    policy.output.register_forward_pre_hook(lambda *_: look("head"))
    step(Learner(policy, engine, make("grpo"), OPTIM, seed=0, clock=Clock("cpu"), updates=2), experience)
    look("after")
    return seen


def gathered_while_read(ranks) -> dict:
    """Under ZeRO-3 with low-rank updates: for each weight that is read its size and how many numbers are whole then."""
    found = {}
    for name, read in (("whole", whole_weights), ("adapter", adapter_weights)):
        policy = policy_of(STAGES["zero3"], lora=True)
        engine = DeepSpeedEngine(policy, OPTIM, STAGES["zero3"], ranks)
        parameters = list(policy.model.parameters())
        sizes = [(weight.numel(), held(parameters)) for _, weight in read(policy.model, engine.whole)]
        found[name] = {"sizes": sizes, "after": held(parameters)}
    return found


def held(parameters) -> int:
    return sum(p.ds_numel for p in parameters if p.ds_status.name == "AVAILABLE")


def asked(ranks) -> dict:
    """A policy that is only asked, divided over the ranks: what it says of their responses, and what each holds."""
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        for engine in (STAGES["zero2"], STAGES["zero3"]):
            policy = policy_of()
            policy.model.to(dtype).requires_grad_(False).eval()
            batch = part_of(experience_of(policy), ranks).batch
            expected = policy.all_stats(batch, BUDGET, ranks).logp
            whole = sum(p.numel() for p in policy.model.parameters())
            place(TrainConfig(engine=replace(engine, bf16=dtype == torch.bfloat16)), policy)
            told = [policy.all_stats(batch, BUDGET, ranks).logp for _ in range(2)]
            gathered = sum(p.numel() for p in policy.model.parameters())
            kept = sum(getattr(p, "ds_tensor", p).numel() for p in policy.model.parameters())
            sizes = {"whole": whole, "kept": kept, "gathered": gathered}
            found[engine.zero_stage, dtype] = {"expected": expected, "told": told, **sizes}
    return found


def placed(ranks) -> dict:
    """Share of a policy's numbers that are whole when DeepSpeed puts it on the device, trained and only asked."""
    found = {}
    for stage in (2, 3):
        config = BF16[f"bf16-{stage}"]
        for trained in (True, False):
            policy, whole = policy_of(), [0]
            policy.model.bfloat16()
            count = sum(p.numel() for p in policy.parameters())
            policy.to = partial(put, policy, whole)
            if trained:
                DeepSpeedEngine(policy, OPTIM, config, ranks)
            else:
                place(TrainConfig(engine=config), policy)
            found[stage, trained] = max(whole) / count
    return found


def put(policy: Policy, whole: list[int], device) -> Policy:
    """What `Policy.to` does, after noting how many numbers are whole."""
    whole.append(sum(p.numel() for p in policy.parameters()))
    return torch.nn.Module.to(policy, device)
