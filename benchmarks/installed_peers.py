"""Losses and advantages of verl and TRL, as they are installed, for comparisons."""

from collections import defaultdict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from comparison import GROUP, LENGTH, ROWS, Fields, Theirs, greedy_of, squares_of, terms_of
from torch import Tensor

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
        groups, rewards = np.arange(ROWS) // GROUP, batch["score"][:, None] * last_of(batch)
        found: Tensor = getattr(core_algos, function)(rewards, mask, groups, **options)[0]
        return found

    return theirs


def verl_remax(batch: Fields, logp: Tensor) -> Tensor:
    from verl.trainer.ppo import core_algos

    greedy, rewards = greedy_of(batch)["greedy"], batch["score"][:, None] * last_of(batch)
    found: Tensor = core_algos.compute_remax_outcome_advantage(rewards, greedy, batch["mask"].double())[0]
    return found


def verl_optimal_token(batch: Fields, logp: Tensor) -> Tensor:
    from verl.trainer.ppo import core_algos

    groups, rewards = np.arange(ROWS) // GROUP, batch["score"][:, None] * last_of(batch)
    tokens = batch["mask"].double(), groups, batch["old_logp"], squares_of(batch)
    found: Tensor = core_algos.compute_optimal_token_baseline_advantage(rewards, *tokens)[0]
    return found


def verl_gdpo(batch: Fields, logp: Tensor) -> Tensor:
    from verl.trainer.ppo import core_algos

    told, prompts = terms_of(batch), torch.zeros(ROWS, 2)
    parts = dict(zip(("first", "second"), told["rewards"].numpy(), strict=True))
    settings = {"gdpo_reward_keys": list(parts), "gdpo_reward_weights": told["weight"].tolist()}
    found: Tensor = core_algos.compute_gdpo_outcome_advantage(
        batch["score"][:, None] * last_of(batch),
        batch["mask"].double(),
        np.arange(ROWS) // GROUP,
        config=SimpleNamespace(get=settings.get),
        non_tensor_batch=parts,
        batch={"prompts": prompts, "attention_mask": torch.cat([torch.ones(ROWS, 2), batch["mask"]], 1).long()},
    )[0]
    return found


def last_of(batch: Fields) -> Tensor:
    """Return 1 at the last token of each response, (B, T)."""
    return torch.nn.functional.one_hot(batch["mask"].sum(-1) - 1, LENGTH)


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
