"""Every controller through verl's own engine code and `ppo_loss`, against its plan computed directly.

    python -P benchmarks/verl_drop_in.py

The batch is real: responses of different lengths, sampled from a tiny Qwen2 model in float64, and a second model near
it, so that importance ratios differ from 1. verl's FSDP engine turns the logits into log-probabilities, entropies and
moments, and verl's `ppo_loss` calls the registered policy loss. The direct plan is made from log_softmax of the same
logits. Difference of the loss: absolute. Of the gradient: the largest entry over all parameters of the model,
relative to the largest entry of the plan's gradient.
"""

import sys
import warnings
from dataclasses import dataclass
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor
from transformers import Qwen2Config, Qwen2ForCausalLM
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
from verl.utils import tensordict_utils as tu
from verl.workers.config import FSDPActorConfig
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.utils.losses import ppo_loss
from verl.workers.utils.padding import left_right_2_no_padding

import entrostat as es
from entrostat.integrations import verl as ours
from entrostat.integrations.packing import pack
from entrostat.integrations.verl_batch import logit_statistics
from entrostat.integrations.verl_settings import CHAIN
from entrostat.numbers.policy_moments import policy_stats
from entrostat.numbers.support import truncated_entropy

VOCABULARY, PROMPTS, GROUP, PROMPT, LENGTH = 32, 4, 4, 3, 10
ROWS = PROMPTS * GROUP
OBSERVED: tuple[dict[str, Any], ...] = (
    {"entropy": 2.0, "total_steps": 10},
    {"entropy": 1.9, "total_steps": 10, "planned": {"siren/entropy": 3.0, "siren/updates": 1.0}},
)
"""Rollouts that closed loops observe first (nats)."""
SETTINGS: dict[str, dict[str, Any]] = {
    "adaptive_entropy": {"target": 3.0},
    "adaptive_entropy_trl": {"target": 3.0},
    "clip_b": {"mu": 0.5},
    "clip_cov": {"k": 0.1, "omega_low": -9.0, "omega_high": 9.0},
    "clip_v": {"mu": 0.0, "k": 0.02},
    "entropy_bonus": {"coef": 0.1},
    "epo": {"coef": 0.1},
    "kl_cov": {"k": 0.1},
    "kl_ref": {"beta": 0.1},
    "ppl_advantage": {"alpha": 0.1},
    "quadrant_mask": {"exploration": 0.0, "share": 1.0},
    "random_positive_clip": {"k": 0.3},
    "stare": {"target": 3.0},
    "thermostat": {"target": 3.0},
    "truncated_entropy_bonus": {"coef": 0.1},
}
"""Settings with which a controller acts on this batch; others have their defaults."""


@dataclass(frozen=True)
class Difference:
    """Difference between verl with a controller and its direct plan."""

    loss: float
    gradient: float


def model(seed: int, moved: float = 0.0) -> Any:
    """Return a Qwen2 model of 6 thousand parameters in float64, its parameters moved by noise of this size."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "max_position_embeddings": 64}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "initializer_range": 0.3}
    made = Qwen2ForCausalLM(Qwen2Config(vocab_size=VOCABULARY, tie_word_embeddings=True, **sizes, **heads)).double()
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += moved * torch.randn_like(parameter)
    return made.eval()


def statistics(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Return log-probability of the labels, entropy and moments of each token."""
    found = policy_stats(logits)
    moments = {name: getattr(found, name).detach() for name in ("s2", "s2l", "s2ll")}
    return {"logp": found.logp.gather(-1, labels[..., None])[..., 0], "entropy": found.entropy, **moments}


@dataclass(frozen=True)
class Batch:
    """One optimizer step's batch: the policy, verl's form of the data, and padded fields, (ROWS, LENGTH) each."""

    policy: Any
    ids: Tensor
    """Prompts and responses, (ROWS, PROMPT + LENGTH)."""
    data: TensorDict
    """verl's form of the batch."""
    mask: Tensor
    fields: dict[str, Tensor]

    def logits(self) -> Tensor:
        """Return the policy's logits at every token of prompt and response, with a gradient."""
        found: Tensor = self.policy(self.ids).logits
        return found

    def gradient(self, loss: Tensor) -> Tensor:
        self.policy.zero_grad()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in self.policy.parameters()])


TOOLS = slice(1, 3)
"""Tokens of each response that a tool would have written."""


@cache
def batch(tools: bool = False) -> Batch:
    """Return responses sampled from one model, to be trained on by another, perhaps with a tool's tokens between."""
    g = torch.Generator().manual_seed(1)
    prompts = torch.randint(1, VOCABULARY, (PROMPTS, PROMPT), generator=g).repeat_interleave(GROUP, 0)
    behaviour, policy, reference = model(0), model(1, moved=0.02), model(2, moved=0.03)
    torch.manual_seed(3)
    ids = behaviour.generate(
        prompts, do_sample=True, max_new_tokens=LENGTH, min_new_tokens=LENGTH, eos_token_id=None, pad_token_id=0
    )
    lengths = torch.randint(2, LENGTH + 1, (ROWS, 1), generator=g)
    mask = torch.arange(LENGTH) < lengths
    attended = torch.cat([torch.ones(ROWS, PROMPT, dtype=torch.long), mask.long()], 1)
    if tools:
        mask[lengths[:, 0] > TOOLS.stop, TOOLS] = False
    with torch.no_grad():
        old, referred = (statistics(m(ids).logits[:, PROMPT - 1 : -1], ids[:, PROMPT:]) for m in (behaviour, reference))
    odd = (ids[:, PROMPT:] % 2).float().mean(-1, keepdim=True)
    score = torch.zeros(ROWS, LENGTH).scatter_(1, lengths - 1, odd)
    uid = np.array([f"prompt {i // GROUP}" for i in range(ROWS)], dtype=object)
    advantages = compute_grpo_outcome_advantage(score, mask.long(), uid)[0].double()
    noise = 0.3 * torch.randn(ROWS, LENGTH, generator=g, dtype=torch.float64)
    tensors = {
        "prompts": ids[:, :PROMPT].clone(),
        "responses": ids[:, PROMPT:].clone(),
        "input_ids": ids,
        "attention_mask": attended,
        "position_ids": (attended.cumsum(1) - 1).clamp(min=0),
        "response_mask": mask.long(),
        "old_log_probs": old["logp"],
        "old_entropy": old["entropy"],
        "ref_log_prob": referred["logp"],
        "rollout_log_probs": old["logp"] + noise,
        "advantages": advantages,
        "rm_scores": score,
    }
    data = left_right_2_no_padding(DataProto.from_dict(tensors=tensors, non_tensors={"uid": uid}).to_tensordict())
    tu.assign_non_tensor(data, dp_size=1, batch_num_tokens=int(mask.sum()), global_batch_size=ROWS)
    rows = torch.arange(ROWS)
    fields = {
        "old_logp": old["logp"],
        "old_entropy": old["entropy"],
        "ref_logp": referred["logp"],
        "rollout_logp": old["logp"] + noise,
        "advantage": advantages,
        "reward": score.sum(-1),
        "seq_id": rows,
        "group_id": rows // GROUP,
    }
    return Batch(policy, ids, data, mask, fields)


def settings(name: str) -> dict[str, Any]:
    return SETTINGS.get(name, {})


def actor(name: str, args: dict[str, Any], **options: Any) -> FSDPActorConfig:
    """Return verl's configuration of an actor with this controller. Raises ValueError if verl cannot run it."""
    given = {
        "rollout_n": GROUP,
        "ppo_micro_batch_size_per_gpu": ROWS,
        "loss_agg_mode": es.make(name).surrogate.aggregation,
        "use_kl_loss": "ref_logp" in es.make(name).needs,
        "kl_loss_coef": 0.0,
    }
    loss = ours.PolicyLossConfig(
        loss_mode="entrostat/chain", controller=name, controller_args=args, updates_per_rollout=0
    )
    return FSDPActorConfig(**(given | options), policy_loss=loss)


def through_verl(config: FSDPActorConfig, tools: bool) -> tuple[Tensor, Tensor]:
    """Return the loss of the batch in verl and its gradient in the parameters of the policy."""
    held, loss = batch(tools), ours.LOSSES[CHAIN]
    controller = loss.prepare(config, config.loss_agg_mode)
    for seen in OBSERVED:
        loss.observe(**seen)
    names = ours.from_logits(controller)
    data = held.data.clone()
    wanted = {"calculate_entropy": "entropy" in controller.needs, "calculate_sum_pi_squared": bool(names)}
    tu.assign_non_tensor(data, use_remove_padding=False, use_fused_kernels=False, **wanted)
    labels = torch.roll(data["input_ids"].values(), shifts=-1, dims=0)
    given = {"input_ids_rmpad_rolled": labels, "temperature": torch.ones(ROWS), "temperature_is_one": True}
    engine = SimpleNamespace(engine_config=SimpleNamespace(entropy_checkpointing=False))
    with logit_statistics(names, controller.support):
        output = FSDPEngineWithLMHead.prepare_model_outputs(
            engine, SimpleNamespace(logits=held.logits()), given, data, None
        )
    found, _ = ours.with_fields(partial(ppo_loss, config=config), config)(model_output=output, data=data)
    return found.detach(), held.gradient(found)


def directly(name: str, args: dict[str, Any], tools: bool) -> tuple[Tensor, Tensor]:
    """Return the loss of the controller's plan and its gradient in the parameters of the policy."""
    held = batch(tools)
    controller = es.make(name, **args)
    for step, seen in enumerate(OBSERVED):
        controller.observe(es.StepStats(**seen, step=step))
    logits = held.logits()[:, PROMPT - 1 : -1]
    now = statistics(logits, held.ids[:, PROMPT:])
    if controller.support is not None:
        now["truncated_entropy"] = truncated_entropy(logits, controller.support)
    packed = pack(held.mask, held.fields | now)
    plan = controller.plan(es.Tokens(**{key: x.detach() for key, x in packed.items()}), seed=0, step=0)
    loss = plan.loss(packed["logp"], packed["entropy"], truncated_entropy=packed.get("truncated_entropy"))
    return loss.detach(), held.gradient(loss)


def compare(name: str, args: dict[str, Any] | None = None, tools: bool = False) -> Difference:
    """Return the difference for a controller, or names joined by +, perhaps with a tool's tokens in the responses.

    Raises ValueError if verl cannot run it.
    """
    args = settings(name) if args is None else args
    ours.LOSSES[CHAIN].settings = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss, gradient = through_verl(actor(name, args), tools)
        expected, direction = directly(name, args, tools)
    gap = (gradient - direction).abs().max() / direction.abs().max()
    return Difference(float((loss - expected).abs()), float(gap))


def main() -> int:
    worst = Difference(0.0, 0.0)
    print(f"{'controller':28} {'loss':>9} {'gradient':>9}")
    for name in es.list_controllers():
        try:
            found = compare(name)
        except ValueError as error:
            print(f"{name:28} {error}")
            continue
        print(f"{name:28} {found.loss:9.1e} {found.gradient:9.1e}")
        worst = Difference(max(worst.loss, found.loss), max(worst.gradient, found.gradient))
    print(f"{'largest':28} {worst.loss:9.1e} {worst.gradient:9.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
