"""Losses of released code, taken from clones, for comparisons."""

import ast
import asyncio
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from comparison import GROUP, LENGTH, ROWS, Fields, Theirs, source_of
from installed_peers import verl_loss
from torch import Tensor

CLONES = Path()
"""Folder of clones, set by --clones."""


def released(repository: str, path: str, *functions: str) -> Callable[..., Any]:
    """Return the last of the functions of a file in a clone; the others are those that it calls."""
    import verl.utils.torch_functional as verl_F
    from verl.trainer.ppo.core_algos import agg_loss

    show = ["git", "-C", str(CLONES / repository), "show", f"HEAD:{path}"]
    tree = ast.parse(subprocess.run(show, capture_output=True, text=True, check=True).stdout)
    kept = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in functions]
    for node in kept:
        node.decorator_list, node.returns = [], None
        for argument in (*node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
    scope: dict[str, Any] = {"torch": torch, "np": np, "verl_F": verl_F, "defaultdict": defaultdict}
    scope |= {"agg_loss": lambda loss_mat, loss_mask, loss_agg_mode, **_: agg_loss(loss_mat, loss_mask, loss_agg_mode)}
    exec(compile(ast.fix_missing_locations(ast.Module(kept, [])), path, "exec"), scope)
    function: Callable[..., Any] = scope[functions[-1]]
    return function


CORE = "verl/trainer/ppo/core_algos.py"


def steer_code(linear: bool) -> Theirs:
    def theirs(batch: Fields, logp: Tensor) -> Tensor:
        loss = released("STEER", CORE, "compute_token_weights", "compute_policy_loss_with_entropy")
        options = {"cliprange": 0.2, "cliprange_low": 0.2, "cliprange_high": 0.28, "clip_ratio_c": 10.0}
        old, advantage, mask, logp = (x.float() for x in (batch["old_logp"], batch["advantage"], batch["mask"], logp))
        weights = {"token_weight_min": 0.8, "token_weight_max": 1.2 if linear else 1.0, "linear": linear}
        found: Tensor = loss(
            old_log_prob=old,
            log_prob=logp,
            advantages=advantage,
            response_mask=mask,
            entropys=batch["old_entropy"].float(),
            **options,
            **weights,
        )[0]
        return found

    return theirs


def ce_gppo_code(batch: Fields, logp: Tensor) -> Tensor:
    loss = released("CE-GPPO", CORE, "compute_gppo_loss_general_beta")
    betas = {"gppo_loss_beta1": 0.75, "gppo_loss_beta2": 1.0}
    old, advantage, mask = batch["old_logp"], batch["advantage"], batch["mask"].double()
    found: Tensor = loss(old, logp, advantage, mask, cliprange=0.2, **betas)[0]
    return found


class Options(SimpleNamespace):
    """Settings with the method `get` of verl's configurations."""

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


def dcpo_code(batch: Fields, logp: Tensor) -> Tensor:
    loss = released("DCPO", CORE, "get_clip_low_high", "compute_policy_loss_dcpo")
    config = Options(clip_type="dynamic", clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=10.0)
    config_type = type("AlgoConfig", (), {})
    loss.__globals__["AlgoConfig"] = config_type
    old, advantage, mask = batch["old_logp"], batch["advantage"], batch["mask"].double()
    found: Tensor = loss(old, logp, advantage, mask, config=config)[0]
    return found


def bapo_code(batch: Fields, logp: Tensor) -> Tensor:
    functions = ("_compute_effective_advantage", "_append_metric", "compute_policy_loss_bapo")
    loss = released("BAPO", "recipe/bapo/policy_loss.py", *functions)
    bounds = {"ratio_lower_start": 0.6, "ratio_lower_max": 0.8, "ratio_lower_step": 0.05}
    bounds |= {"ratio_upper_start": 1.2, "ratio_upper_max": 2.0, "ratio_upper_step": 0.05}
    config = Options(policy_loss=Options(**bounds, adv_ratio_target=1.0, eps=1e-8), clip_ratio=0.2, clip_ratio_c=1e9)
    old, advantage, mask = batch["old_logp"], batch["advantage"], batch["mask"].double()
    found: Tensor = loss(old, logp, advantage, mask, config=config)[0]
    return found


def prime_rl_ipo_code(batch: Fields, logp: Tensor) -> Tensor:
    helpers = ("_safe_mean", "compute_importance_ratio_and_mismatch_kl")
    loss = released("prime-rl", "src/prime_rl/trainer/rl/loss.py", *helpers, "ipo_loss_fn")
    loss.__globals__["LossOutputs"] = SimpleNamespace
    numbers = {"trainer_logprobs": logp, "inference_logprobs": batch["old_logp"], "advantages": batch["advantage"]}
    inputs = SimpleNamespace(**numbers, loss_mask=batch["mask"], loss_weights=None)
    found: Tensor = loss(inputs, SimpleNamespace(ipo_threshold=0.1, adv_tau=1.0, kl_tau=1e-3)).loss
    return found / batch["mask"].sum()


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def prime_rl_advantage(module: str) -> Theirs:
    """Return the advantages of an algorithm of prime-rl, which scores a group at a time."""

    def theirs(batch: Fields, logp: Tensor) -> Tensor:
        score = released_method("prime-rl", f"src/prime_rl/orchestrator/algo/{module}.py", "score_group")
        score.__globals__["iter_trainable_traces"] = lambda traces: [(None, trace) for trace in traces]
        score.__globals__["assign_advantages"] = lambda trace, advantage: setattr(trace, "advantage", advantage)
        sources = source_of(batch)["source"].tolist()
        traces = [
            SimpleNamespace(reward=reward, agent=SimpleNamespace(name=source))
            for reward, source in zip(batch["score"].tolist(), sources, strict=True)
        ]
        itself = SimpleNamespace(decay=0.95, baselines=defaultdict(float))
        for first in range(0, ROWS, GROUP):
            asyncio.run(score(itself, traces[first : first + GROUP]))
        return torch.tensor([trace.advantage for trace in traces], dtype=torch.float64)[:, None].expand(
            batch["mask"].shape
        )

    return theirs


def released_method(repository: str, path: str, name: str) -> Callable[..., Any]:
    """Return a method of the only class of a file in a clone, as a function."""
    show = ["git", "-C", str(CLONES / repository), "show", f"HEAD:{path}"]
    tree = ast.parse(subprocess.run(show, capture_output=True, text=True, check=True).stdout)
    (owner,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    (method,) = (node for node in owner.body if isinstance(node, FUNCTIONS) and node.name == name)
    method.decorator_list, method.returns = [], None
    for argument in method.args.args:
        argument.annotation = None
    scope: dict[str, Any] = {"torch": torch, "np": np, "defaultdict": defaultdict, "print": lambda *_: None}
    exec(compile(ast.fix_missing_locations(ast.Module([method], [])), path, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function


def trinity(batch: Fields, logp: Tensor, path: str, **settings: float) -> Tensor:
    """Return PPO over the tokens that an advantage function of Trinity-RFT leaves in its mask."""
    masked = released_method("Trinity-RFT", f"trinity/algorithm/advantage_fn/{path}", "__call__")
    last = torch.nn.functional.one_hot(batch["mask"].sum(-1) - 1, LENGTH)
    tensors = {
        "token_level_rewards": batch["advantage"] * last,  # one response a prompt: the advantage is the reward
        "response_mask": batch["mask"].double(),
        "old_log_probs": batch["logp"],
        "rollout_log_probs": batch["logp"],
        "entropys": batch["entropy"].detach(),
        "necs": batch["entropy"].detach() * batch["s2"] + batch["s2l"],  # as in its clipv_dp_actor.py
    }
    seen = SimpleNamespace(batch=tensors, non_tensor_batch={"uid": range(ROWS)})
    masked(SimpleNamespace(epsilon=0.0, **settings), seen)
    return verl_loss("vanilla", clip_ratio_c=1e9)({**batch, "mask": tensors["response_mask"]}, logp)


def clip_b_code(batch: Fields, logp: Tensor) -> Tensor:
    return trinity(batch, logp, "clipb_advantage.py", mu=0.5)


def clip_v_code(batch: Fields, logp: Tensor) -> Tensor:
    return trinity(batch, logp, "clipv_advantage.py", mu=0.3, max_frac=0.1)


def entrocraft_code(entropy: float) -> Theirs:
    """Return PPO on the released advantages of scores ±1 outside the band from .6 to .7."""

    def theirs(batch: Fields, logp: Tensor) -> Tensor:
        kinds = ("raftpp", "nsr", "grpo", "grpo_range")
        advantage = released("entrocraft", CORE, *(f"compute_{kind}_outcome_advantage" for kind in kinds))
        mask = batch["mask"].double()
        last = torch.nn.functional.one_hot(batch["mask"].sum(-1) - 1, LENGTH)
        scores = (2 * batch["score"] - 1)[:, None] * last
        found = advantage(scores, mask, entropy, 0.6, 0.7, np.arange(ROWS) // GROUP)[0]
        return verl_loss("vanilla", clip_ratio_c=1e9)({**batch, "advantage": found}, logp)

    return theirs


def epo_code(average: float) -> Theirs:
    """Return PPO minus 0.1·(H − P) as in update_policy, P the released penalty outside .8 to 1.2 times `average`."""

    def theirs(batch: Fields, logp: Tensor) -> Tensor:
        penalty = released_method("EPO", "verl/workers/actor/dp_actor.py", "generate_entropy_penalty")
        history, steps = np.full(51, average), np.full(ROWS, 50)
        outside = penalty(None, history, batch["entropy"], steps, "token", 0.8, 1.2, 0.1)[0]
        mask = batch["mask"].double()
        bonus = ((batch["entropy"] - outside) * mask).sum() / mask.sum()
        return verl_loss("vanilla", clip_ratio_c=1e9)(batch, logp) - 0.1 * bonus

    return theirs
