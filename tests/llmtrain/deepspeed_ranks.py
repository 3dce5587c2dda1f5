"""What every rank of the DeepSpeed tests runs: all checks in one process group, whose start costs more than they do.

RANK=0 WORLD_SIZE=2 ... python deepspeed_ranks.py OUT        rank 0 writes OUT/found.pt, which the tests judge
"""

import gc
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import yaml

from entrostat import get_advantage, make
from llmtrain.batch import Batch
from llmtrain.clock import Clock
from llmtrain.config import EngineConfig, ModelConfig, OptimConfig, PrimeConfig, RewardConfig, TrainConfig
from llmtrain.deepspeed_engine import DeepSpeedEngine
from llmtrain.engine import NonFiniteError, TorchEngine
from llmtrain.engines import place
from llmtrain.implicit_reward import ImplicitReward, optim_of
from llmtrain.learner import Experience, Learner
from llmtrain.lora import ADAPTER, adapter_weights, attach, layers, updates, whole_weights
from llmtrain.model import build_tiny
from llmtrain.nested import merge
from llmtrain.policy import Policy
from llmtrain.ranks import join, leave
from llmtrain.trainer import Trainer

GROUPS, SAMPLES, VOCAB = 6, 4, 50
BUDGET = 200
"""Tokens of a micro-batch: several for a rank that holds most, one or none for others."""
OPTIM = OptimConfig(lr=1e-3, weight_decay=0.1, warmup_steps=2, max_grad_norm=0, micro_batch_tokens=BUDGET)
CLIPPED = replace(OptimConfig(**vars(OPTIM)), max_grad_norm=0.05)
EDITED = replace(CLIPPED, lr=3e-3, betas=(0.5, 0.6), weight_decay=0.5)
OWNERS = {1: [0] * 6, 2: [0, 0, 0, 0, 0, 1], 4: [0, 0, 0, 1, 1, 2]}
"""Which rank holds each group: token counts differ, and of 4 ranks the last holds none."""
PARTITIONED = {
    "zero_optimization": {
        "stage3_param_persistence_threshold": 0,
        "stage3_max_live_parameters": 0,
        "stage3_max_reuse_distance": 0,
        "stage3_prefetch_bucket_size": 0,
    }
}
"""So that ZeRO-3 treats the small weights of these models as it treats large ones."""
STAGES = {f"zero{stage}": EngineConfig(name="deepspeed", zero_stage=stage, deepspeed=PARTITIONED) for stage in range(4)}
OPTIONS = {
    "offload2": replace(STAGES["zero2"], offload_optimizer=True),
    "offload3": replace(STAGES["zero3"], offload_optimizer=True, offload_param=True),
    "checkpointed2": replace(STAGES["zero2"], gradient_checkpointing=True),
    "checkpointed3": replace(STAGES["zero3"], gradient_checkpointing=True),
}
SMALL_BUCKETS = {"zero_optimization": {**PARTITIONED["zero_optimization"], "reduce_bucket_size": 10_000}}
"""So that buckets, which do not grow with a large model, do not count."""
BF16 = {f"bf16-{stage}": replace(STAGES[f"zero{stage}"], bf16=True) for stage in (1, 2, 3)}
LORA = ModelConfig(lora_rank=4, lora_alpha=6)


def policy_of(config: EngineConfig = EngineConfig(), lora: bool = False) -> Policy:  # noqa: B008
    """A model with random weights, the same in every call. lora: low-rank updates are trained, and are not 0."""
    model = build_tiny(VOCAB, hidden=32, layers=2, heads=2, kv_heads=2, intermediate=64, seed=0).train()
    if lora:
        attach(model, LORA, seed=0)
        generator = torch.Generator().manual_seed(5)
        for _, layer in layers(model):
            torch.nn.init.normal_(layer.lora_B[ADAPTER].weight, std=0.1, generator=generator)
    if config.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return Policy(model)


def experience_of(policy: Policy) -> Experience:
    """Random sequences of very different lengths, whose rollout policy differs a little from `policy`."""
    generator = torch.Generator().manual_seed(3)
    count = GROUPS * SAMPLES
    prompts = torch.randint(2, 6, (count,), generator=generator)
    responses = torch.randint(1, 30, (count,), generator=generator)
    ids = torch.randint(2, VOCAB, (int((prompts + responses).sum()),), generator=generator)
    batch = Batch(ids, prompts, responses)
    stats = policy.all_stats(batch, BUDGET)
    moved = 0.1 * torch.randn(len(stats.logp), generator=generator)
    group = torch.arange(count) // SAMPLES
    reward = torch.rand(count, generator=generator)
    reward[group == 1] = 0.5  # a group without a signal
    advantage = get_advantage("grpo")(reward, group)
    return Experience(batch, stats._replace(logp=stats.logp + moved), reward, advantage, group, torch.arange(count))


def part_of(experience: Experience, ranks) -> Experience:
    owner = torch.tensor(OWNERS[ranks.size])[experience.group]
    return experience.select((owner == ranks.rank).nonzero()[:, 0])


def step(learner: Learner, experience: Experience) -> dict[str, float]:
    """One update of the whole experience; the policy's statistics are computed anew."""
    now = learner.policy.all_stats(experience.batch, BUDGET, learner.engine.ranks)
    plan = learner.controller.plan(experience.tokens(now), learner.engine.ranks.reduce, seed=1, step=2)
    return learner.optimize(experience, plan)


def flat(weights) -> torch.Tensor:
    return torch.cat([weight.float().flatten() for _, weight in weights])


def weights(engine, policy: Policy) -> torch.Tensor:
    return flat(whole_weights(policy.model, engine.whole))


def adapter(engine, policy: Policy) -> torch.Tensor:
    return flat(adapter_weights(policy.model, engine.whole))


def moments(engine, policy: Policy) -> torch.Tensor:
    """First moments of AdamW after one step, divided by 1 − β₁: the gradient."""
    from deepspeed.utils import safe_get_full_optimizer_state

    found = []
    for p in policy.model.parameters():
        if not p.requires_grad:
            continue
        state = engine.optimizer.state.get(p)
        found.append(safe_get_full_optimizer_state(p, "exp_avg") if state is None else state["exp_avg"])
    return torch.cat([x.detach().float().flatten() for x in found]) / (1 - OPTIM.betas[0])


def masters(ranks) -> dict:
    """Under bf16 the fp32 weights that the optimizer moves, before and after three steps, and the bf16 weights then."""
    from deepspeed.utils import safe_get_full_fp32_param

    found = {}
    for name, config in BF16.items():
        policy = policy_of(config)
        experience = part_of(experience_of(policy), ranks)
        engine = DeepSpeedEngine(policy, CLIPPED, config, ranks)
        parameters = list(policy.model.parameters())
        start = torch.cat([safe_get_full_fp32_param(p).flatten() for p in parameters]).clone()
        update(engine, policy, "grpo", experience, CLIPPED, 3)
        end = torch.cat([safe_get_full_fp32_param(p).flatten() for p in parameters])
        found[name] = {"start": start, "end": end, "weights": weights(engine, policy)}
    start = weights(TorchEngine(policy_of().model, OPTIM), policy_of())
    return found | {"torch": {"start": start, "end": on_torch("grpo", CLIPPED, 3)["weights"]}}


def update(engine, policy: Policy, spec: str, experience: Experience, optim: OptimConfig, steps: int = 1) -> dict:
    learner = Learner(policy, engine, make(spec), optim, seed=0, clock=Clock("cpu"))
    metrics = [step(learner, experience) for _ in range(steps)]
    found = {"gradient": moments(engine, policy), "weights": weights(engine, policy), "metrics": metrics}
    return found | {"adapter": adapter(engine, policy)} if updates(policy.model) else found


def on_torch(spec: str, optim: OptimConfig, steps: int = 1, *, lora: bool = False) -> dict:
    policy = policy_of(lora=lora)
    return update(TorchEngine(policy.model, optim), policy, spec, experience_of(policy), optim, steps)


def on_deepspeed(
    spec: str, optim: OptimConfig, config: EngineConfig, ranks, steps: int = 1, *, lora: bool = False
) -> dict:
    policy = policy_of(config, lora)
    experience = part_of(experience_of(policy), ranks)
    return update(DeepSpeedEngine(policy, optim, config, ranks), policy, spec, experience, optim, steps)


def gradients(ranks) -> dict:
    """The first gradient, for a surrogate of single tokens and one of whole sequences, and of low-rank updates."""
    chosen = {"entropy_bonus": {name: config for name, config in STAGES.items() if name != "zero0" or ranks.size < 4}}
    if ranks.size == 2:
        chosen = {"entropy_bonus": STAGES | OPTIONS, "gspo": {"zero3": STAGES["zero3"]}}
    found = {}
    for spec, variants in chosen.items():
        found[spec, "torch"] = on_torch(spec, OPTIM)
        found |= {(spec, name): on_deepspeed(spec, OPTIM, config, ranks) for name, config in variants.items()}
    few = {name: STAGES[name] for name in ("zero2", "zero3")}
    found["lora", "torch"] = on_torch("entropy_bonus", OPTIM, lora=True)
    for name, config in (STAGES if ranks.size == 2 else few).items():
        found["lora", name] = on_deepspeed("entropy_bonus", OPTIM, config, ranks, lora=True)
    return found


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
        learner = Learner(policy, engine, make("grpo"), OPTIM, seed=0, clock=Clock("cpu"))
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


def three_steps(ranks) -> dict:
    """Three steps with clipped gradients and a warm-up."""
    variants = STAGES | {"bf16-2": BF16["bf16-2"]}
    found = {name: on_deepspeed("grpo", CLIPPED, config, ranks, 3) for name, config in variants.items()}
    found |= {f"lora-{i}": on_deepspeed("grpo", CLIPPED, STAGES[f"zero{i}"], ranks, 3, lora=True) for i in (2, 3)}
    return found | {"torch": on_torch("grpo", CLIPPED, 3), "lora-torch": on_torch("grpo", CLIPPED, 3, lora=True)}


def faults(ranks) -> dict:
    """On the first rank only a NaN loss, and an infinite gradient: messages, and on how many ranks weights moved."""
    found = {}
    for name, config in STAGES.items():
        for kind in ("nan", "inf"):
            policy = policy_of(config)
            experience = part_of(experience_of(policy), ranks)
            if kind == "nan" and ranks.rank == 0:
                experience = replace(experience, advantage=experience.advantage * torch.nan)
            if kind == "inf" and ranks.rank == 0:
                last = policy.model.base_model.layers[1]
                last.register_full_backward_hook(lambda module, into, out: tuple(x * torch.inf for x in into))
            engine = DeepSpeedEngine(policy, OPTIM, config, ranks)
            before, message = weights(engine, policy), "nothing raised"
            try:
                step(Learner(policy, engine, make("grpo"), OPTIM, seed=0, clock=Clock("cpu")), experience)
            except NonFiniteError as error:
                message = str(error)
            moved = int(not torch.equal(before, weights(engine, policy)))
            raised = int(message != "nothing raised")
            ranks_raised, ranks_moved = ranks.total(torch.tensor([raised, moved])).tolist()
            found[name, kind] = {"message": message, "raised": ranks_raised, "moved": ranks_moved}
    return found


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
    step(Learner(policy, engine, make("grpo"), OPTIM, seed=0, clock=Clock("cpu")), experience)
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


def shards(ranks, out: Path) -> dict:
    """Two of the three steps, a checkpoint, and the third by new engines: the weights before it and after.

    The second of them has other settings. refused: what is said of checkpoints that are of no such engine.
    """
    found = {}
    chosen = {name: (STAGES | BF16)[name] for name in ("zero0", "zero2", "zero3", "bf16-2")}
    chosen |= {"lora-2": STAGES["zero2"], "lora-3": STAGES["zero3"]}
    for name, config in chosen.items():
        ends: list[torch.Tensor] = []
        state: dict = {}
        for optim, steps in ((CLIPPED, 2), (CLIPPED, 1), (EDITED, 1)):
            policy = policy_of(config, name.startswith("lora"))
            experience = part_of(experience_of(policy), ranks)
            engine = DeepSpeedEngine(policy, optim, config, ranks)
            if state:
                engine.load_state_dict(state)
                engine.load_shards(out / name)
            learner = Learner(policy, engine, make("grpo"), optim, seed=0, clock=Clock("cpu"))
            for _ in range(steps):
                step(learner, experience)
            if not state:
                engine.save_shards(out / name)
                state = engine.state_dict()
            ends.append(weights(engine, policy))
        found[name] = dict(zip(("before", "resumed", "edited"), ends, strict=True))
    others = [{"optimizer": {}}, state | {"world_size": 3}, state | {"zero_stage": 1}]
    return found | {"edited": edited_on_torch(), "refused": [refusal(engine, other) for other in others]}


def edited_on_torch() -> torch.Tensor:
    """The weights after two steps, and a third by a new engine with other settings."""
    policy, state = policy_of(), {}
    experience = experience_of(policy)
    for optim, steps in ((CLIPPED, 2), (EDITED, 1)):
        engine = TorchEngine(policy.model, optim)
        if state:
            engine.load_state_dict(state)
        update(engine, policy, "grpo", experience, optim, steps)
        state = engine.state_dict()
    return weights(engine, policy)


def refusal(engine: DeepSpeedEngine, state: dict) -> str:
    try:
        engine.load_state_dict(state)
    except ValueError as error:
        return str(error)
    return ""


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
            place(TrainConfig(engine=engine), policy)
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


def rewards(ranks) -> dict:
    """Two steps of PRIME's reward model: metrics and weights, in one process and on the ranks."""
    found = {}
    optim = optim_of(PrimeConfig(lr=1e-3), CLIPPED)
    for name, config in {"torch": None, **STAGES}.items():
        policy = policy_of(config or EngineConfig())
        whole = experience_of(policy)
        mine = part_of(whole, ranks) if config else whole
        engine = DeepSpeedEngine(policy, optim, config, ranks) if config else TorchEngine(policy.model, optim)
        model = ImplicitReward(policy, engine, beta=0.5, budget=BUDGET)
        ref_logp, correct = mine.stats.logp - 0.1, (mine.reward > 0.5).float()
        metrics = [model.learn(mine.batch, ref_logp, correct) for _ in range(2)]
        found[name] = {"metrics": metrics, "weights": weights(engine, policy)}
    return found


def small_steps(ranks) -> dict:
    """How far the reward model's master weights move under bf16 in two steps of 1e-6."""
    from deepspeed.utils import safe_get_full_fp32_param

    found = {}
    for name, config in BF16.items():
        policy = policy_of(config)
        mine = part_of(experience_of(policy), ranks)
        engine = DeepSpeedEngine(policy, optim_of(PrimeConfig(lr=1e-6), CLIPPED), config, ranks)
        model, parameters = ImplicitReward(policy, engine, beta=0.5, budget=BUDGET), list(policy.model.parameters())
        start = torch.cat([safe_get_full_fp32_param(p).flatten() for p in parameters]).clone()
        for _ in range(2):
            model.learn(mine.batch, mine.stats.logp - 0.1, (mine.reward > 0.5).float())
        found[name] = torch.cat([safe_get_full_fp32_param(p).flatten() for p in parameters]) - start
    return found


def runs(ranks, config: TrainConfig, out: Path) -> None:
    """Whole runs: torch in one process, ZeRO-3 by all ranks, and that one stopped and resumed."""
    zero3 = replace(config, engine=STAGES["zero3"])
    if ranks.rank == 0:
        Trainer(replace(config, out=str(out / "torch")), config.model.path).run()
    ranks.barrier()
    Trainer(replace(zero3, out=str(out / "zero3")), config.model.path).run()
    halves = replace(zero3, out=str(out / "halves"))
    Trainer(replace(halves, steps=2), config.model.path).run()
    Trainer(halves, config.model.path, resume=True).run()


def main(out: Path) -> None:
    torch.set_num_threads(1)
    ranks = join("cpu")
    found: dict = {"bytes": state_bytes(ranks)} if ranks.size == 2 else {}
    found["gradients"] = gradients(ranks)
    if ranks.size == 2:
        found |= {"faults": faults(ranks), "head": head_status(ranks), "masters": masters(ranks)}
        found["read"] = gathered_while_read(ranks)
        found |= {"steps": three_steps(ranks), "shards": shards(ranks, out)}
        found |= {"asked": asked(ranks), "placed": placed(ranks)}
        found |= {"rewards": rewards(ranks), "small steps": small_steps(ranks)}
        config = merge(TrainConfig(), yaml.safe_load((out / "config.yaml").read_text()))
        runs(ranks, config, out)
        runs(ranks, replace(config, model=replace(config.model, lora_rank=4)), out / "lora")
        prime = replace(config, advantage="prime", prime=PrimeConfig(lr=1e-4), controller="entropy_bonus+kl_ref")
        runs(ranks, replace(prime, reward=RewardConfig()), out / "prime")
    if ranks.rank == 0:
        torch.save(found, out / "found.pt")
    leave(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
