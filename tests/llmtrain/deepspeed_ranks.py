"""The work of every rank in the DeepSpeed tests: many checks in one process group, whose start costs as much.

Rank 0 writes OUT/found.pt, which the tests judge.
"""

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from deepspeed_memory import asked, gathered_while_read, head_status, placed, state_bytes
from deepspeed_scene import (
    BF16,
    BUDGET,
    CLIPPED,
    EDITED,
    OPTIM,
    OPTIONS,
    STAGES,
    adapter,
    experience_of,
    moments,
    part_of,
    policy_of,
    step,
    weights,
)

from entrostat import make
from llmtrain.policy.deepspeed_engine import TAG, DeepSpeedEngine
from llmtrain.policy.engine import NonFiniteError, TorchEngine
from llmtrain.policy.lora import updates
from llmtrain.policy.policy import Policy
from llmtrain.process.clock import Clock
from llmtrain.process.ranks import join, leave
from llmtrain.sequences.ragged import starts
from llmtrain.settings.config import EngineConfig, OptimConfig, PrimeConfig, RewardConfig, TrainConfig
from llmtrain.training.implicit_reward import ImplicitReward, optim_of
from llmtrain.training.learner import Experience, Learner
from llmtrain.training.trainer import Trainer
from llmtrain.verifiers import Verdict, Verifier


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
    learner = Learner(policy, engine, make(spec), optim, seed=0, clock=Clock("cpu"), updates=2)
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
    if ranks.size == 1:  # in the quick tests
        chosen = {"entropy_bonus": {name: STAGES[name] for name in ("zero2", "zero3")}}
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
                before = replace(experience.before, advantage=experience.before.advantage * torch.nan)
                experience = replace(experience, before=before)
            if kind == "inf" and ranks.rank == 0:
                last = policy.model.base_model.layers[1]
                last.register_full_backward_hook(lambda module, into, out: tuple(x * torch.inf for x in into))
            engine = DeepSpeedEngine(policy, OPTIM, config, ranks)
            before, message = weights(engine, policy), "nothing raised"
            try:
                step(Learner(policy, engine, make("grpo"), OPTIM, seed=0, clock=Clock("cpu"), updates=2), experience)
            except NonFiniteError as error:
                message = str(error)
            moved = int(not torch.equal(before, weights(engine, policy)))
            raised = int(message != "nothing raised")
            ranks_raised, ranks_moved = ranks.total(torch.tensor([raised, moved])).tolist()
            found[name, kind] = {"message": message, "raised": ranks_raised, "moved": ranks_moved}
    return found


PARTS = (("before", CLIPPED, 2), ("resumed", CLIPPED, 1), ("edited", EDITED, 1), ("earlier", CLIPPED, 1))
"""Engines that follow each other: settings and steps."""


def shards(ranks, out: Path) -> dict:
    """Two of the three steps, a checkpoint, and the third by new engines: the weights before it and after.

    The second of them has other settings; the last one reads the checkpoint in the form of earlier versions.
    refused: what is said of checkpoints that are of no such engine. incomplete: what is said of one in the earlier form
    that lacks a file of the last rank, by the stage and the file's kind.
    """
    found, incomplete = {}, {}
    chosen = {name: (STAGES | BF16)[name] for name in ("zero0", "zero2", "zero3", "bf16-2")}
    chosen |= {"lora-2": STAGES["zero2"], "lora-3": STAGES["zero3"]}
    for name, config in chosen.items():
        ends: dict[str, torch.Tensor] = {}
        state: dict = {}
        saved: dict = {}
        for end, optim, steps in PARTS:
            policy = policy_of(config, name.startswith("lora"))
            experience = part_of(experience_of(policy), ranks)
            policy.model.load_state_dict(saved or policy.model.state_dict())
            engine = DeepSpeedEngine(policy, optim, config, ranks)
            if state:
                earlier = {"world_size": ranks.size, "zero_stage": config.zero_stage, "scheduler": state["scheduler"]}
                engine.load_state_dict(earlier if end == "earlier" else state)
                engine.load_shards(out / end / name if end == "earlier" else out / name)
            learner = Learner(policy, engine, make("grpo"), optim, seed=0, clock=Clock("cpu"), updates=2)
            for _ in range(steps):
                step(learner, experience)
            if not state:
                engine.save_shards(out / name)
                engine.deepspeed.save_checkpoint(str(out / "earlier" / name), tag=TAG, save_latest=False)
                state = engine.state_dict()
                with engine.whole(policy.model.parameters()):
                    saved = {key: weight.clone() for key, weight in policy.model.state_dict().items()}
            ends[end] = weights(engine, policy)
        if name in STAGES:
            for kind in ("model_states", "optim_states"):
                incomplete[name, kind] = lacking(engine, out / "earlier" / name, kind)
        found[name] = ends
    others = [{"optimizer": {}}, *(state | other for other in ({"world_size": 3}, {"zero_stage": 1}, {"bf16": True}))]
    refused = [refusal(engine.load_state_dict, other) for other in others]
    return found | {"edited": edited_on_torch(), "refused": refused, "incomplete": incomplete}


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


def refusal(load: Callable, given: dict | Path) -> str:
    try:
        load(given)
    except ValueError as error:
        return str(error)
    return ""


def lacking(engine: DeepSpeedEngine, folder: Path, kind: str) -> list[str]:
    """Return each rank's error for an earlier form's checkpoint without its last file of a kind, which is put back."""
    file = max((folder / TAG).glob(f"*{kind}.pt"), default=None)
    if engine.ranks.rank == 0 and file:
        file.rename(folder / "aside")
    engine.ranks.barrier()
    said = engine.ranks.gather([refusal(engine.load_shards, folder)])
    if engine.ranks.rank == 0 and file:
        (folder / "aside").rename(file)
    engine.ranks.barrier()
    return said


def correct_of(mine) -> torch.Tensor:
    """Return verdicts of sequences (B,)."""
    return (mine.before.reward[starts(mine.batch.response_lengths)] > 0.5).float()


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
        ref_logp, correct = mine.stats.logp - 0.1, correct_of(mine)
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
            model.learn(mine.batch, mine.stats.logp - 0.1, correct_of(mine))
        found[name] = torch.cat([safe_get_full_fp32_param(p).flatten() for p in parameters]) - start
    return found


class Short(Verifier):
    """Likes short responses, of which a model that knows nothing gives some."""

    def judge(self, responses, ground_truths):
        return [Verdict(len(response) <= 5, "") for response in responses]


def run(config: TrainConfig, resume: bool = False) -> None:
    trainer = Trainer(config, config.model.path, resume)
    if config.rollout.filter_groups:
        trainer.collector.task = replace(trainer.task, start_verifier=Short)
    trainer.run()


def runs(ranks, config: TrainConfig, out: Path) -> None:
    """Whole runs: torch in one process, ZeRO-3 by all ranks, and that one stopped and resumed."""
    zero3 = replace(config, engine=STAGES["zero3"])
    if ranks.rank == 0:
        run(replace(config, out=str(out / "torch")))
    ranks.barrier()
    run(replace(zero3, out=str(out / "zero3")))
    halves = replace(zero3, out=str(out / "halves"))
    run(replace(halves, steps=1))
    run(halves, resume=True)


def kinds(config: TrainConfig) -> dict[str, TrainConfig]:
    """Return the settings of whole runs by their kind."""
    rollout = replace(config.rollout, filter_groups=True, max_gen_batches=20)
    prime = replace(config, advantage="prime", prime=PrimeConfig(lr=1e-4), controller="entropy_bonus+kl_ref")
    return {
        "plain": config,
        "lora": replace(config, model=replace(config.model, lora_rank=4)),
        "filtered": replace(config, rollout=rollout),
        "prime": replace(prime, reward=RewardConfig()),
    }


def main(out: Path, config: TrainConfig, *further: str) -> None:
    """Look at single engines and at a whole run; or only at gradients, or at whole runs of kinds that are named."""
    torch.set_num_threads(1)
    ranks = join("cpu")
    if "gradients" in further:
        found = {"gradients": gradients(ranks)}
    else:
        found = {} if further else look(ranks, out)
        for kind in further or ("plain",):
            runs(ranks, kinds(config)[kind], out / kind)
    if found and ranks.rank == 0:
        torch.save(found, out / "found.pt")
    leave(0)


def look(ranks, out: Path) -> dict:
    """Return results of single engines on two ranks."""
    found: dict = {"bytes": state_bytes(ranks)}
    gc.freeze()  # DeepSpeed collects garbage for every engine: without what the first ones imported, that is quick
    found |= {"faults": faults(ranks), "head": head_status(ranks), "masters": masters(ranks)}
    found["read"] = gathered_while_read(ranks)
    found |= {"steps": three_steps(ranks), "shards": shards(ranks, out)}
    found |= {"asked": asked(ranks), "placed": placed(ranks)}
    return found | {"rewards": rewards(ranks), "small steps": small_steps(ranks)}
