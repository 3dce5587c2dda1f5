"""Controllers, surrogates and advantages against the functions of others, on the same tensors in float64.

    python benchmarks/conformity.py                 measure verl and TRL, write docs/conformity.json and .md
    python benchmarks/conformity.py --clones DIR    also released code: clones DIR/<repository name>, such as DIR/STEER
    python benchmarks/conformity.py --page          only write the page, from the numbers measured before

Difference of the loss: absolute. Difference of the gradient in log π: the largest, divided by the largest entry of the
other's gradient. Advantages: the largest difference of an advantage, and none of a gradient.
"""

import argparse
import ast
import json
import subprocess
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrostat import StepStats, Tokens, get_advantage, make
from entrostat.description import names
from entrostat.integrations.packing import pack

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "docs" / "conformity.json", ROOT / "docs" / "conformity.md"
ROWS, LENGTH, GROUP = 12, 9, 4
ROUNDING = 1e-9
"""Differences below this are written as rounding."""
Fields = dict[str, Tensor]
Theirs = Callable[[Fields, Tensor], Tensor]
"""Loss of the other's function: fields of the batch, (B, T) each, and log π with a gradient."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One name against one function of others."""

    spec: str
    """Names joined by +, as in `make`, or an advantage."""
    peer: str
    """Project and function."""
    theirs: Theirs
    settings: Mapping[str, Any] = field(default_factory=dict)
    preset: str = "paper"
    reason: str = ""
    """Cause of a difference that is not rounding, or condition of the comparison."""
    tolerance: float = ROUNDING
    entropy: float | None = None
    """Entropy that the controller observes first, for closed loops."""
    clone: str = ""
    """Repository that the function is taken from; empty if it is installed."""

    @property
    def key(self) -> str:
        given = ", ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.settings.items()
        )
        preset = "" if self.preset == "paper" else f" [{self.preset}]"
        return f"{self.spec}{preset}{f' ({given})' if given else ''}"

    def measure(self) -> tuple[float, float | None]:
        """Return the differences of loss and gradient; the second is None for an advantage."""
        batch = fields()
        mask = batch["mask"]
        if self.spec.split()[0] in names("advantage"):
            rows = torch.arange(ROWS) // GROUP
            length = {"length": mask.sum(-1)} if "length" in TAKES_LENGTH.get(self.spec.split()[0], ()) else {}
            ours = get_advantage(self.spec)(batch["score"], rows, **length)
            gap = (ours[:, None] - self.theirs(batch, batch["logp"]))[mask]
            return float(gap.abs().max()), None
        logp = batch["logp"].clone().requires_grad_()
        loss = self.theirs(batch, logp)
        (gradient,) = torch.autograd.grad(loss, logp)
        names_of_fields = (
            "logp",
            "old_logp",
            "ref_logp",
            "rollout_logp",
            "advantage",
            "entropy",
            "old_entropy",
            "reward",
        )
        packed = pack(mask, {name: batch[name] for name in names_of_fields} | {"seq_id": torch.arange(ROWS)})
        controller = make(self.spec, self.preset, **self.settings)
        if self.entropy is not None:
            controller.observe(StepStats(entropy=self.entropy, step=0, total_steps=10))
        plan = controller.plan(Tokens(**packed))
        ours_loss = plan.loss(packed["logp"], packed["entropy"])
        ours_gradient = plan.coefficients(packed["logp"], packed["entropy"])[0]
        gap = (ours_gradient - gradient[mask]).abs().max() / gradient.abs().max()
        return float((ours_loss - loss.detach()).abs()), float(gap)


TAKES_LENGTH = {"opo": ("length",), "reinforce_pp": ("length",)}


def fields() -> Fields:
    """Return a padded batch: (B, T) each, `mask` true on tokens, `score` (B,) of 0 or 1. Ratios are from .4 to 6."""
    g = torch.Generator().manual_seed(7)
    shape = (ROWS, LENGTH)
    logp = -3 * torch.rand(*shape, generator=g, dtype=torch.float64) - 0.05
    drift, other, more = torch.randn(3, *shape, generator=g, dtype=torch.float64)
    score = torch.randint(0, 2, (ROWS,), generator=g).double()
    entropy, old_entropy = 2 * torch.rand(2, *shape, generator=g, dtype=torch.float64)
    length = torch.randint(2, LENGTH + 1, (ROWS, 1), generator=g)
    old = (logp + 0.5 * drift).clamp(max=-0.01)
    return {
        "logp": logp,
        "old_logp": old,
        "rollout_logp": old + 0.6 * other,
        "ref_logp": logp + 0.3 * more,
        "advantage": torch.randn(ROWS, 1, generator=g, dtype=torch.float64).expand(shape),
        "entropy": entropy,
        "old_entropy": old_entropy,
        "score": score,
        "reward": score[:, None].expand(shape),
        "mask": torch.arange(LENGTH) < length,
    }


# verl -----------------------------------------------------------------------------------------------------------------


def verl_loss(mode: str, aggregation: str = "token-mean", policy: Mapping[str, Any] = {}, **options: Any) -> Theirs:
    """Return a policy loss that verl registers; options are those of its actor, `policy` those of its policy loss."""

    def theirs(batch: Fields, logp: Tensor, weights: Tensor | None = None) -> Tensor:
        from verl.trainer.ppo.core_algos import get_policy_loss_fn
        from verl.workers.config import ActorConfig, PolicyLossConfig

        given = {"strategy": "fsdp", "rollout_n": 1, "ppo_micro_batch_size_per_gpu": 1, **options}
        config = ActorConfig(**given, policy_loss=PolicyLossConfig(loss_mode=mode, **policy))
        loss: Tensor = get_policy_loss_fn(mode)(
            batch["old_logp"], logp, batch["advantage"], batch["mask"].double(), aggregation, config, weights
        )[0]
        return loss

    return theirs


def verl_corrected(option: str, bounds: str, mean: bool) -> Theirs:
    """Return verl's vanilla loss with weights π_old/π_rollout where its rejection mask keeps a token."""

    def theirs(batch: Fields, logp: Tensor) -> Tensor:
        from verl.trainer.ppo.rollout_corr_helper import compute_rollout_rejection_mask

        gap, mask = batch["old_logp"] - batch["rollout_logp"], batch["mask"].double()
        kept = compute_rollout_rejection_mask(gap, mask, option, bounds)[0]
        level = ((gap * mask).sum(-1) / mask.sum(-1))[:, None] if mean else gap
        return verl_loss("vanilla", clip_ratio_c=1e9)(batch, logp, level.exp() * kept)

    return theirs


def verl_advantage(function: str, **options: Any) -> Theirs:
    def theirs(batch: Fields, logp: Tensor) -> Tensor:
        from verl.trainer.ppo import core_algos

        mask = batch["mask"].double()
        last = torch.nn.functional.one_hot(batch["mask"].sum(-1) - 1, LENGTH)
        groups = np.arange(ROWS) // GROUP
        found: Tensor = getattr(core_algos, function)(batch["score"][:, None] * last, mask, groups, **options)[0]
        return found

    return theirs


# TRL ------------------------------------------------------------------------------------------------------------------


def trl_loss(**options: Any) -> Theirs:
    """Return the loss of TRL's GRPOTrainer on one batch; options are attributes of the trainer or of its arguments."""

    def theirs(batch: Fields, logp: Tensor) -> Tensor:
        from trl import GRPOTrainer

        trainer = TrlTrainer(options, logp, batch["entropy"])
        trainer.get_high_entropy_mask = GRPOTrainer.get_high_entropy_mask.__get__(trainer)
        trainer.get_off_policy_mask = GRPOTrainer.get_off_policy_mask
        trainer.get_gamma_weights = GRPOTrainer.get_gamma_weights
        mask = batch["mask"].double()
        empty = torch.zeros(ROWS, 0, dtype=torch.long)
        inputs = {
            **{"prompt_ids": empty, "prompt_mask": empty, "completion_ids": mask.long(), "completion_mask": mask},
            "advantages": batch["advantage"][:, 0],
            "old_per_token_logps": batch["old_logp"],
            "num_items_in_batch": mask.sum(),
        }
        loss: Tensor = GRPOTrainer._compute_loss(trainer, trainer.model, inputs)
        return loss

    return theirs


class TrlTrainer(SimpleNamespace):
    """The attributes that GRPOTrainer._compute_loss reads, with TRL's defaults, in one process and one micro-batch."""

    def __init__(self, options: Mapping[str, Any], logp: Tensor, entropy: Tensor) -> None:
        args = SimpleNamespace(
            delta=options.get("delta"),
            sapo_temperature_pos=1.0,
            sapo_temperature_neg=1.05,
            vespo_k_pos=2.0,
            vespo_lambda_pos=3.0,
            vespo_k_neg=3.0,
            vespo_lambda_neg=2.0,
            steps_per_generation=1,
        )
        accelerator = SimpleNamespace(
            num_processes=1,
            sync_gradients=True,
            gather=lambda x: x,
            gather_for_metrics=lambda x: x,
            pad_across_processes=lambda x, **_: x,
            reduce=lambda x, **_: x,
        )
        defaults = {
            "loss_type": "dapo",
            "epsilon_low": 0.2,
            "epsilon_high": 0.2,
            "importance_sampling_level": "token",
            "top_entropy_quantile": 1.0,
            "off_policy_mask_threshold": None,
            "beta": 0.0,
            "entropy_coef": 0.0,
        }
        super().__init__(
            **defaults | dict(options),
            args=args,
            accelerator=accelerator,
            model=SimpleNamespace(training=True),
            current_gradient_accumulation_steps=1,
            max_completion_length=LENGTH,
            use_vllm=False,
            use_adaptive_entropy=False,
            aux_loss_enabled=False,
            _entropy_bonus_enabled=options.get("entropy_coef", 0.0) != 0.0,
            _metrics=defaultdict(lambda: defaultdict(list)),
            _get_per_token_logps_and_entropies=lambda *_, **__: (logp, entropy, None),
        )


# Released code ------------------------------------------------------------------------------------------------------

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


# Table ----------------------------------------------------------------------------------------------------------------

SEQUENCES = "seq-mean-token-mean"
VERL, TRL = "verl ", "TRL GRPOTrainer, "
COMPARISONS = [
    Comparison(
        spec="ppo", settings={"dual_clip": 3.0}, peer=VERL + "compute_policy_loss_vanilla", theirs=verl_loss("vanilla")
    ),
    Comparison(
        spec="clip_higher",
        settings={"dual_clip": 10.0},
        peer=VERL + "compute_policy_loss_vanilla",
        theirs=verl_loss("vanilla", clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=10.0),
    ),
    Comparison(spec="reinforce", peer=VERL + "compute_policy_loss_gpg", theirs=verl_loss("gpg")),
    Comparison(
        spec="cispo",
        settings={"eps_low": 0.2, "eps_high": 0.2},
        peer=VERL + "compute_policy_loss_cispo",
        theirs=verl_loss("cispo"),
    ),
    Comparison(
        spec="dppo",
        peer=VERL + "compute_policy_loss_dppo_tv",
        theirs=verl_loss("dppo_tv", clip_ratio=0.15, clip_ratio_low=0.15, clip_ratio_high=0.15, clip_ratio_c=20.0),
    ),
    Comparison(
        spec="dppo_kl",
        peer=VERL + "compute_policy_loss_dppo_kl",
        theirs=verl_loss("dppo_kl", clip_ratio=0.05, clip_ratio_low=0.05, clip_ratio_high=0.05, clip_ratio_c=20.0),
    ),
    Comparison(
        spec="sapo",
        peer=VERL + "compute_policy_loss_sapo",
        theirs=verl_loss("sapo", tau_pos=1.0, tau_neg=1.05),
        tolerance=1e-8,
        reason="verl adds 1e-8 to the length of a response",
    ),
    Comparison(
        spec="gspo",
        settings={"eps_low": 0.1, "eps_high": 0.1},
        peer=VERL + "compute_policy_loss_gspo",
        theirs=verl_loss("gspo", SEQUENCES, clip_ratio_low=0.1, clip_ratio_high=0.1),
        tolerance=1e-8,
        reason="verl adds 1e-8 to the length of a response",
    ),
    Comparison(
        spec="gmpo",
        peer=VERL + "compute_policy_loss_geo_mean",
        theirs=verl_loss("geo_mean", clip_ratio_low=0.4, clip_ratio_high=0.4),
        tolerance=1e-8,
        reason="verl adds 1e-8 to the length of a response",
    ),
    Comparison(
        spec="clip_cov",
        settings={"k": 1.0, "omega_low": 0.2, "eps_low": 0.2, "eps_high": 0.2},
        peer=VERL + "compute_policy_loss_clip_cov",
        tolerance=1e-8,
        theirs=verl_loss("clip_cov", policy={"clip_cov_ratio": 1.0, "clip_cov_lb": 0.2, "clip_cov_ub": 5.0}),
        reason="with a budget of all candidates; the draws of a smaller one have other random numbers",
    ),
    Comparison(
        spec="kl_cov",
        settings={"k": 0.1},
        peer=VERL + "compute_policy_loss_kl_cov",
        theirs=verl_loss("kl_cov", policy={"kl_cov_ratio": 0.1, "ppo_kl_coef": 1.0}),
    ),
    Comparison(
        spec="rollout_correction",
        preset="released",
        peer=VERL + "compute_rollout_rejection_mask, token_k1",
        theirs=verl_corrected("token_k1", "0.2_2.0", mean=False),
        settings={"dual_clip": 1e9},
        reason="verl bounds π_rollout/π_old, so that its 0.2 and 2 are 0.5 and 5 here",
    ),
    Comparison(
        spec="rollout_correction",
        settings={"mode": "geometric_mask", "floor": 0.8, "cap": 1.25},
        peer=VERL + "compute_rollout_rejection_mask, seq_mean_k1",
        tolerance=1e-8,
        theirs=verl_corrected("seq_mean_k1", "0.8_1.25", mean=True),
    ),
    Comparison(
        spec="grpo",
        peer=VERL + "compute_grpo_outcome_advantage",
        theirs=verl_advantage("compute_grpo_outcome_advantage"),
    ),
    Comparison(
        spec="dr_grpo",
        peer=VERL + "compute_grpo_outcome_advantage",
        theirs=verl_advantage("compute_grpo_outcome_advantage", norm_adv_by_std_in_grpo=False),
    ),
    Comparison(
        spec="rloo",
        peer=VERL + "compute_rloo_outcome_advantage",
        theirs=verl_advantage("compute_rloo_outcome_advantage"),
    ),
    Comparison(
        spec="opo", peer=VERL + "compute_opo_outcome_advantage", theirs=verl_advantage("compute_opo_outcome_advantage")
    ),
    Comparison(
        spec="reinforce_pp",
        peer=VERL + "compute_reinforce_plus_plus_baseline_outcome_advantage",
        theirs=verl_advantage("compute_reinforce_plus_plus_baseline_outcome_advantage"),
        tolerance=1e-8,
        reason="verl adds 1e-8 to the number of tokens; a group of one has no baseline there, advantage 0 here",
    ),
    Comparison(spec="ppo", peer=TRL + "loss_type dapo or bnpo", theirs=trl_loss()),
    Comparison(
        spec="ppo", settings={"aggregation": SEQUENCES}, peer=TRL + "loss_type grpo", theirs=trl_loss(loss_type="grpo")
    ),
    Comparison(
        spec="ppo",
        settings={"aggregation": "fixed", "constant": float(ROWS * LENGTH)},
        peer=TRL + "loss_type dr_grpo",
        theirs=trl_loss(loss_type="dr_grpo"),
    ),
    Comparison(spec="ppo", settings={"dual_clip": 1.5}, peer=TRL + "delta", theirs=trl_loss(delta=1.5)),
    Comparison(
        spec="gspo",
        settings={"eps_low": 0.1, "eps_high": 0.1},
        peer=TRL + "importance_sampling_level sequence",
        theirs=trl_loss(loss_type="grpo", importance_sampling_level="sequence", epsilon_low=0.1, epsilon_high=0.1),
    ),
    Comparison(
        spec="cispo",
        settings={"eps_high": 0.5},
        peer=TRL + "loss_type cispo",
        theirs=trl_loss(loss_type="cispo", epsilon_high=1.5),
        reason="TRL's epsilon_high is the cap itself, 1 + eps_high",
    ),
    Comparison(
        spec="sapo",
        peer=TRL + "loss_type sapo",
        theirs=trl_loss(loss_type="sapo"),
        tolerance=1e-7,
        reason="TRL holds τ in float32",
    ),
    Comparison(spec="vespo", peer=TRL + "loss_type vespo", theirs=trl_loss(loss_type="vespo")),
    Comparison(
        spec="forking_tokens",
        settings={"share": 0.5},
        peer=TRL + "top_entropy_quantile",
        theirs=trl_loss(top_entropy_quantile=0.5),
        reason="for a whole share·N: TRL rounds the number of kept tokens up, here it is rounded down",
    ),
    Comparison(
        spec="forking_tokens+entropy_bonus",
        settings={"share": 0.5, "coef": 0.1, "tokens": "kept"},
        peer=TRL + "top_entropy_quantile with entropy_coef",
        theirs=trl_loss(top_entropy_quantile=0.5, entropy_coef=0.1),
        reason="for a whole share·N, as above",
    ),
    Comparison(
        spec="entropy_bonus", settings={"coef": 0.1}, peer=TRL + "entropy_coef", theirs=trl_loss(entropy_coef=0.1)
    ),
    Comparison(
        spec="opsm",
        settings={"delta": 0.05},
        peer=TRL + "off_policy_mask_threshold",
        theirs=trl_loss(off_policy_mask_threshold=0.05),
    ),
    Comparison(
        spec="steer",
        preset="released",
        peer="zz-haooo/STEER compute_policy_loss_with_entropy",
        clone="STEER",
        theirs=steer_code(linear=False),
        reason="the released function holds weights in float32",
    ),
    Comparison(
        spec="steer",
        preset="released",
        settings={"mapping": "linear"},
        clone="STEER",
        peer="zz-haooo/STEER compute_policy_loss_with_entropy, linear",
        theirs=steer_code(linear=True),
        reason="the released function holds weights in float32",
    ),
    Comparison(
        spec="ce_gppo",
        preset="released",
        peer="Kwai-Klear/CE-GPPO compute_gppo_loss_general_beta",
        clone="CE-GPPO",
        theirs=ce_gppo_code,
    ),
    Comparison(
        spec="dcpo",
        preset="released",
        peer="lime-RL/DCPO compute_policy_loss_dcpo, clip_type dynamic",
        clone="DCPO",
        theirs=dcpo_code,
    ),
    Comparison(
        spec="bapo",
        preset="released",
        peer="WooooDyy/BAPO compute_policy_loss_bapo",
        clone="BAPO",
        theirs=bapo_code,
        reason="without dual clip, which is the surrogate's here",
    ),
    Comparison(
        spec="entrocraft",
        preset="released",
        settings={"anneal": 0.0},
        entropy=0.8,
        clone="entrocraft",
        peer="lblaoke/entrocraft compute_grpo_range_outcome_advantage, above its band",
        theirs=entrocraft_code(0.8),
    ),
    Comparison(
        spec="entrocraft",
        preset="released",
        settings={"anneal": 0.0},
        entropy=0.5,
        clone="entrocraft",
        peer="lblaoke/entrocraft compute_grpo_range_outcome_advantage, below its band",
        theirs=entrocraft_code(0.5),
    ),
]

HEADER = """# Conformity with released code

Made by `python benchmarks/conformity.py`, which says how; a test compares the installed peers anew and fails when a
name is missing here. All numbers are from one padded batch of {rows} responses in float64 whose ratios are far enough
from 1 for every bound to be reached. Loss: absolute difference. Gradient: largest difference in log π, relative to the
largest entry of the other's gradient. For advantages, the first number is the largest difference of an advantage.
"rounding" is below {rounding:g}.

| ours | theirs | loss | gradient | reason or condition |
|---|---|---|---|---|
"""
REST = """
## Not compared with a function

No function of others is compared for these names; their tests have numbers worked out by hand from the paper or from
the released code that `python -m entrostat describe NAME` cites.

"""


def number(x: float | None) -> str:
    return "–" if x is None else "rounding" if x < ROUNDING else f"{x:.0e}"


def markdown(results: Mapping[str, list[float | None]]) -> str:
    """Return the page; results: differences of loss and gradient by `identity` of a comparison."""
    text = HEADER.format(rows=ROWS, rounding=ROUNDING)
    for c in COMPARISONS:
        loss, gradient = results[identity(c)]
        text += f"| `{c.key}` | {c.peer} | {number(loss)} | {number(gradient)} | {c.reason or '–'} |\n"
    return text + REST + ", ".join(f"`{name}`" for name in rest()) + "\n"


def identity(c: Comparison) -> str:
    return f"{c.key} = {c.peer}"


def rest() -> list[str]:
    """Return the names that no comparison has."""
    compared = {name for c in COMPARISONS for name in c.spec.split("+")}
    every = [name for kind in ("surrogate", "controller", "advantage") for name in names(kind)]
    return [name for name in every if name not in compared]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clones", type=Path, help="folder of clones of released code")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for c in COMPARISONS:
        if given.page or (c.clone and given.clones is None):
            continue
        globals()["CLONES"] = given.clones
        results[identity(c)] = c.measure()
        print(identity(c), *results[identity(c)], flush=True)
    known = [identity(c) for c in COMPARISONS]
    RESULTS.write_text(json.dumps({key: results[key] for key in known}, indent=1) + "\n")
    PAGE.write_text(markdown({key: results[key] for key in known}))


if __name__ == "__main__":
    main()
