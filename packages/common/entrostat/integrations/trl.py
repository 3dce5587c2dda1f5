"""TRL's GRPOTrainer with the policy loss of an entropy controller.

    rollout (TRL) ─► statistics ─► observe ─► buffered micro-batches
                                                   │
    optimizer step: Tokens of all its micro-batches and processes ─► plan ─► plan.loss(micro-batch) ─► backward

    trainer = EntrostatGRPOTrainer(model, reward, args, dataset, controller="clip_higher+steer")

Written for TRL 1.16. Shapes: B responses of a micro-batch, T their padded length, N packed response tokens.
"""

import copy
import dataclasses
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import trl
from torch import Tensor
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import TrainerState
from trl import GRPOConfig, GRPOTrainer

from ..by_name import make
from ..chaining import chain
from ..controller import Controller, StepStats
from ..diagnostics import EntropyTrace, diagnose
from ..numbers.policy_moments import policy_stats
from ..numbers.reduce import DistReduce, LocalReduce
from ..numbers.segments import Segments
from ..plan import Plan, importance_ratio
from ..tokens import Tokens
from .packing import pack, require_fields
from .resuming import STATE_FILE, starts_afresh
from .trl_progress import show_progress
from .trl_settings import check_replaced, check_resets, delta_settings, loss_type_settings

SUPPORTED_TRL = "1.16."
MOMENTS = ("s2", "s2l", "s2ll")
POLICY_FIELDS = frozenset({"logp", "entropy", *MOMENTS})
"""Fields of Tokens that change when the policy moves."""
AVAILABLE = POLICY_FIELDS | {"old_logp", "old_entropy", "reward", "seq_id", "group_id", "position", "turn_id"}
"""Fields of Tokens that this trainer fills, besides the advantage."""
OWN = "entrostat."
"""Key prefix of tensors added to TRL's batches; they are (B, T) or (B,), so that TRL shuffles and splits them."""
MOMENT_TOKENS = 512
"""Number of tokens whose moments are computed from logits at once."""

FORWARD_INPUTS = (
    "pixel_values",
    "image_grid_thw",
    "num_images",
    "pixel_attention_mask",
    "spatial_shapes",
    "num_tiles",
    "image_sizes",
    "token_type_ids",
    "mm_token_type_ids",
    "image_position_ids",
)


class EntrostatGRPOTrainer(GRPOTrainer):
    """GRPOTrainer whose policy loss is the plan of an entropy controller.

    controller: names joined by +, as in `entrostat.make`, or a controller object. With "grpo" this is GRPOTrainer
        with its default loss (loss_type "dapo", epsilon 0.2), as long as steps_per_generation equals
        gradient_accumulation_steps: TRL divides by the mean number of tokens of a generation batch's optimizer
        steps, a plan by the number of tokens of its own step.
    controller_preset: "paper" or "released".
    controller_args: hyperparameters of the controller.
    progress: metrics to print at each log, in one line, instead of a progress bar and all metrics; empty for TRL's way.
    loss_type "grpo", "dr_grpo", "bnpo" and "luspo" set the `aggregation` of the controller's surrogate; the default,
    "dapo", leaves the surrogate's own. With a controller that names `cispo`, loss_type "cispo" and epsilon_high are
    translated: TRL's is the cap of the ratio itself, `eps_high` its distance above 1. delta becomes `dual_clip`, and
    importance_sampling_level "sequence" may stay beside `gspo` and `luspo`.
    All other arguments are GRPOTrainer's.

    A plan is made over all micro-batches and processes of an optimizer step, from statistics of the model without
    dropout. The update itself uses dropout, and its ratio is relative to the old log-probabilities that TRL uses.
    Closed loops observe the token-mean entropy of each rollout (nats, at the sampling temperature) over all processes;
    evaluation never changes them. Their state is part of the trainer's checkpoints; after a checkpoint of GRPOTrainer
    they start afresh. `beta` adds TRL's KL term, unless a
    part of the controller needs the reference policy itself: then `beta` only makes TRL load it.

    Raises ValueError on options that the controller replaces, on a controller that needs fields of Tokens that cannot
    be filled, and if an optimizer step would span several rollouts.
    """

    args: GRPOConfig
    model: Any

    def __init__(
        self,
        *args: Any,
        controller: str | Controller = "grpo",
        controller_preset: str = "paper",
        controller_args: Mapping[str, Any] | None = None,
        progress: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        if not trl.__version__.startswith(SUPPORTED_TRL):
            warnings.warn(f"written for TRL {SUPPORTED_TRL}x, found {trl.__version__}", stacklevel=2)
        self.translated: dict[str, Any] = {}
        """Hyperparameters of the controller that options of GRPOConfig stand for."""
        if isinstance(controller, str):
            config = kwargs.get("args", args[2] if len(args) > 2 else None)
            given = dict(controller_args or {})
            self.translated = loss_type_settings(config, controller, given)
            self.translated |= delta_settings(config, controller, controller_preset, self.translated | given)
            self.controller = make(controller, controller_preset, **self.translated, **given)
        elif controller_args:
            raise ValueError("controller_args needs a controller given by name")
        else:
            self.controller = chain(controller)
        self.plan: Plan | None = None
        """Plan of the optimizer step in progress."""
        self._parts: list[slice] = []
        """Slice of the plan's tokens for each micro-batch."""
        self._now = torch.zeros(0)
        """Log-probability of each of the plan's tokens in the update (nats), filled micro-batch by micro-batch."""
        self._updates_since_rollout = 0
        self._planned: dict[str, float] = {}
        """`Plan.info`, summed over the updates since the last rollout."""
        self.trace = EntropyTrace()
        self._slices = 0
        """Number of micro-batches in a rollout."""
        super().__init__(*args, **kwargs)
        self._check()
        if progress:
            show_progress(self, progress)
        self.reduce = DistReduce() if self.accelerator.num_processes > 1 else LocalReduce()

    def _check(self) -> None:
        check_replaced(self.args, self.translated, self.controller)
        every, steps = self.args.gradient_accumulation_steps, self.args.steps_per_generation
        assert steps is not None  # GRPOConfig has derived it from the batch sizes
        self._slices = steps
        if steps % every:
            raise ValueError(
                f"steps_per_generation {steps} must be a multiple of gradient_accumulation_steps {every}: "
                "a plan needs all tokens of its optimizer step from one rollout"
            )
        available = AVAILABLE if self.beta == 0.0 else AVAILABLE | {"ref_logp"}
        hints = {
            "ref_logp": "set beta in GRPOConfig, which makes TRL load the reference policy",
            "rollout_logp": "TRL corrects by itself, GRPOConfig.vllm_importance_sampling_correction",
        }
        require_fields(self.controller, available, "this trainer", hints)
        check_resets(self.controller, steps // every * self.num_iterations)
        if not hasattr(self.train_dataset, "__len__"):  # a stream has no epochs, which a rule may need
            first = StepStats(entropy=1.0, step=0, total_steps=self.args.max_steps, epoch=1)
            copy.deepcopy(self.controller).observe(first)
        rollout, group = self.args.per_device_train_batch_size * steps, self.args.num_generations
        assert group is not None
        if "group_id" in self.controller.needs and (steps != every or rollout % group):
            raise ValueError(
                f"controller {self.controller.name!r} needs all responses to a prompt in one optimizer step and on one "
                "process: set steps_per_generation to gradient_accumulation_steps, and per_device_train_batch_size "
                f"times it, {rollout}, to a multiple of num_generations {group}"
            )
        if "group_id" in self.controller.needs and self.args.mask_truncated_completions:
            raise ValueError(
                f"controller {self.controller.name!r} needs all responses to a prompt, and masked ones have no tokens: "
                "leave mask_truncated_completions off"
            )

    # The rollout ------------------------------------------------------------------------------------------------------

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Tensor:
        rewards = super()._calculate_rewards(*args, **kwargs)
        self._rewards = (rewards * self.reward_weights.to(rewards.device)).nansum(dim=1)
        return rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        if not self.model.training:
            return batch
        rows = len(batch["advantages"])
        index = torch.arange(rows, device=batch["advantages"].device) + self.accelerator.process_index * rows
        current = self._policy_fields(batch)
        batch |= {
            f"{OWN}reward": self._rewards[index],
            f"{OWN}seq_id": index,
            f"{OWN}group_id": index // self.num_generations,
            f"{OWN}old_logp": current["logp"],
            f"{OWN}old_entropy": current["entropy"],
            **{f"{OWN}{name}": current[name] for name in MOMENTS if name in current},
        }
        self._observe(current["entropy"][_token_mask(batch)])
        self._updates_since_rollout = 0
        return batch

    def _observe(self, entropy: Tensor) -> None:
        """Let the controller observe a rollout, once; `entropy` (N,) of this process's response tokens, nats."""
        args, state = self.args, self.state
        updates = self._slices // args.gradient_accumulation_steps * self.num_iterations
        mean = self.reduce.mean(entropy).item()
        self.controller.observe(
            StepStats(
                entropy=mean,
                step=state.global_step // updates,
                total_steps=max(state.max_steps // updates, 1) if (state.max_steps or 0) > 0 else None,
                epoch=int(state.epoch or 0) + 1,
                epochs=state.num_train_epochs if state.num_train_epochs < sys.maxsize else None,  # of a stream
                delay=0,
                planned=self._planned,
            )
        )
        self._log(self.trace.observe(mean) | self.controller.metrics())
        self._planned = {}

    # Statistics of the policy -----------------------------------------------------------------------------------------

    def _score(self, model: Any, batch: dict[str, Any], **options: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return log-probabilities and entropies (B, T) of the responses, nats, and an MoE model's router loss."""
        inputs = {name: batch.get(name) for name in FORWARD_INPUTS}
        width = batch["completion_ids"].shape[1]
        return self._get_per_token_logps_and_entropies(
            model, *_sequences(batch), width, compute_entropy=True, **inputs, **options
        )

    @torch.no_grad()
    def _policy_fields(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Return the current policy's fields of Tokens, (B, T) each; moments only if the controller needs them."""
        with _without_dropout(self.model):
            logp, entropy, _ = self._score(self.model, batch, batch_size=self.args.per_device_train_batch_size)
            fields = {"logp": logp, "entropy": entropy}
            if not self.controller.needs.isdisjoint(MOMENTS):
                fields |= self._moments(batch)
        return fields

    def _moments(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Return collision moments (B, T), one response at a time. Raises ValueError on batches with images."""
        if batch.get("pixel_values") is not None:
            raise ValueError(f"controller {self.controller.name!r} needs moments of the policy: text only")
        mask, width = _token_mask(batch), batch["completion_ids"].shape[1]
        out = torch.zeros(len(MOMENTS), *mask.shape, device=mask.device)
        for row, (ids, attention) in enumerate(zip(*_sequences(batch), strict=True)):
            with self.accelerator.autocast():
                output = self.model(input_ids=ids[None], attention_mask=attention[None], use_cache=False)
            logits = output.logits[0, -width - 1 : -1][mask[row]]
            stats = [policy_stats(some.float() / self.temperature) for some in logits.split(MOMENT_TOKENS)]
            for i, name in enumerate(MOMENTS):
                out[i, row, mask[row]] = torch.cat([getattr(part, name) for part in stats])
        return dict(zip(MOMENTS, out, strict=True))

    # The update -------------------------------------------------------------------------------------------------------

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        inputs = super()._prepare_inputs(generation_batch)
        every = self.args.gradient_accumulation_steps
        if self.model.training and self._step % every == 0:
            first = self._step % self._slices
            assert self._buffered_inputs is not None
            self._start_update(self._buffered_inputs[first : first + every])
        return inputs

    def _start_update(self, batches: list[dict[str, Any]]) -> None:
        """Make the plan of an optimizer step from all its micro-batches."""
        moved = self._updates_since_rollout > 0 and not self.controller.needs.isdisjoint(POLICY_FIELDS)
        parts = [self._token_fields(batch, moved) for batch in batches]
        fields = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        if not moved:
            fields |= {"logp": fields["old_logp"], "entropy": fields["old_entropy"]}
        tokens = Tokens(**fields)
        ends = torch.tensor([0, *(len(part["old_logp"]) for part in parts)]).cumsum(0).tolist()
        self._parts = [slice(*bounds) for bounds in pairwise(ends)]
        self._now = torch.empty_like(fields["old_logp"])
        plan = self.controller.plan(tokens, self.reduce, seed=self.args.seed, step=self.state.global_step)
        # As in TRL, which keeps none if a rollout has a single update: the ratio is then 1 even with dropout.
        theirs = [b["old_per_token_logps"][_token_mask(b)] for b in batches if "old_per_token_logps" in b]
        old_logp = torch.cat(theirs) if theirs else self._now
        self.plan, self.tokens = plan.changed(old_logp=old_logp), dataclasses.replace(tokens, old_logp=old_logp)
        self._updates_since_rollout += 1
        for key, value in self.plan.info.items():
            self._planned[key] = self._planned.get(key, 0.0) + float(value)
        self._log(self.plan.info)

    def _token_fields(self, batch: dict[str, Any], moved: bool) -> dict[str, Tensor]:
        """Return packed fields of the tokens of a micro-batch, (N,) each; `moved` recomputes those of the policy."""
        own = {name.removeprefix(OWN): value for name, value in batch.items() if name.startswith(OWN)}
        current = self._policy_fields(batch) if moved else {}
        fields = {"advantage": batch["advantages"], "ref_logp": batch.get("ref_per_token_logps"), **own, **current}
        return pack(_token_mask(batch), fields)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        if not self.model.training:
            return super()._compute_loss(model, inputs)
        assert self.plan is not None
        part = self._parts[self._step % self.args.gradient_accumulation_steps]
        logp_2d, entropy_2d, aux_loss = self._score(model, inputs, compute_aux_loss=self.aux_loss_enabled)
        mask = _token_mask(inputs)
        logp, entropy = logp_2d[mask], entropy_2d[mask]
        self._now[part] = logp.detach()
        token_loss = self.plan.token_loss(logp, entropy, part)
        if "importance_sampling_ratio" in inputs:  # vLLM's samples against this policy's probabilities
            token_loss = token_loss * inputs["importance_sampling_ratio"].expand(mask.shape)[mask]
        if self.beta != 0.0 and "ref_logp" not in self.controller.needs:
            token_loss = token_loss + self._reference_kl(logp, inputs, part)
        # TRL averages gradients over processes and adds them over micro-batches; a plan's losses add over both.
        loss = token_loss.sum() * self.accelerator.num_processes
        if aux_loss is not None:
            loss = loss + self.router_aux_loss_coef * aux_loss / self.args.gradient_accumulation_steps
        if part is self._parts[-1]:
            self._end_update()
        return loss

    def _reference_kl(self, logp: Tensor, inputs: dict[str, Any], part: slice) -> Tensor:
        """Return TRL's KL term of each token: beta·k3, times the importance ratio with use_bias_correction_kl."""
        assert self.plan is not None
        mask = _token_mask(inputs)
        log_ratio = inputs["ref_per_token_logps"][mask] - logp
        kl = log_ratio.exp() - log_ratio - 1
        self._log({"kl": self.reduce.mean(kl.detach())})
        if self.args.use_bias_correction_kl:
            kl = kl * self._kl_weight(logp, part)
        scale = self.plan.scale
        return self.beta * kl * (scale if scale.shape[-1] == 1 else scale[part])

    def _kl_weight(self, logp: Tensor, part: slice) -> Tensor:
        """Return the importance ratio of each token, or that of its response if TRL's options ask for it."""
        old_logp = self.tokens.get("old_logp")[part]
        if self.args.importance_sampling_level == "token":
            return importance_ratio(logp, old_logp)
        responses = Segments(self.tokens.get("seq_id")[part])
        return responses.spread(responses.mean(logp - old_logp)).exp()

    def _end_update(self) -> None:
        """Log the metrics of docs/metrics.md over the whole optimizer step."""
        assert self.plan is not None
        found = diagnose(self.tokens, self.plan, self._now, reduce=self.reduce)
        del found["entropy"]  # logged once per rollout
        self._log(found)
        if "flow/total" in found:
            before = 0.0 if self._updates_since_rollout == 1 else float(self.trace.flow)
            self.trace.expect(before + float(found["flow/total"]))

    def _log(self, metrics: Mapping[str, float | Tensor]) -> None:
        for key, value in metrics.items():
            self._metrics["train"][key].append(float(value))

    # Checkpoints ------------------------------------------------------------------------------------------------------

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            state = {
                "controller": self.controller.state_dict(),
                "trace": self.trace.state_dict(),
                "planned": self._planned,
            }
            torch.save(state, folder / STATE_FILE)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        path = Path(checkpoint) / STATE_FILE
        if not path.is_file():
            history = TrainerState.load_from_json(str(Path(checkpoint) / TRAINER_STATE_NAME)).log_history
            first = next((entry["entropy"] for entry in history if entry.get("entropy")), None)
            self.accelerator.print(starts_afresh(self.controller, checkpoint, first))
            return
        state = torch.load(path, weights_only=True)
        self.controller.load_state_dict(state["controller"])
        self.trace.load_state_dict(state["trace"])
        self._planned = state["planned"]


@contextmanager
def _without_dropout(model: Any) -> Iterator[None]:
    """Run a training model in evaluation mode, so that dropout is off and draws no random numbers."""
    model.eval()
    try:
        yield
    finally:
        model.train()


def _sequences(batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Return token ids and attention mask of prompts and responses together, (B, P + T) each."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    return ids, torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)


def _token_mask(batch: dict[str, Any]) -> Tensor:
    """Return a mask (B, T) of the tokens that the policy generated and that count."""
    mask = batch["completion_mask"]
    return (mask * batch["tool_mask"] if "tool_mask" in batch else mask).bool()
