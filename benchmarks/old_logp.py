"""Effect of `rollout.old_logp rollout`: log-probabilities of the engine in place of those of the trainer's own pass.

    OMP_NUM_THREADS=2 python benchmarks/old_logp.py MODEL [--prompts 16]

MODEL is a folder, such as models/smollm2-arithmetic. For each engine: the time of a rollout, how far its
log-probabilities are from the trainer's in fp32, the share of tokens that PPO's clip (.2) takes for moved although
nothing has moved, and the distance of the first update's gradient from that with the trainer's log-probabilities, in
units of the latter's norm, beside the distance between the gradients of two halves of the groups (sampling noise; the
null is a distance as large). `corrected` are the trainer's log-probabilities with `rollout_correction`.
"""

import argparse
import time
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

import entrostat as es
from llmtrain.data.prompts import encode_all
from llmtrain.policy.model import load
from llmtrain.policy.policy import Policy
from llmtrain.process.ranks import Ranks
from llmtrain.rollout.hf import stop_ids
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.rollout.mismatch import mismatch
from llmtrain.rollout.rollout_engine import Request
from llmtrain.rollout.vllm.vllm_engine import VLLMEngine
from llmtrain.sequences.batch import Batch
from llmtrain.sequences.rollouts import Rollouts
from llmtrain.settings.config import RolloutConfig, TaskConfig
from llmtrain.tasks import generated_task

BUDGET = 1024
CLIP = 0.2


class Sampled(NamedTuple):
    """Responses of an engine, and the seconds they took."""

    rollouts: Rollouts
    seconds: float


def sample(
    folder: str, policy: Policy, tokenizer: PreTrainedTokenizerBase, config: RolloutConfig, request: Request
) -> Sampled:
    """Return responses of the engine, the second time it is asked: the first call compiles and fills caches."""
    if config.name == "hf":
        engine = HFEngine(policy.model, tokenizer, config)
    else:
        engine = VLLMEngine(folder, config, stop_ids(policy.model, tokenizer))
    engine.update(policy.model.named_parameters(), 1)
    engine.submit(request)()
    began = time.perf_counter()
    rollouts = engine.submit(request)()
    seconds = time.perf_counter() - began
    engine.close()
    return Sampled(rollouts, seconds)


def gradient(policy: Policy, batch: Batch, tokens: es.Tokens, spec: str, keep: Tensor) -> Tensor:
    """Return the gradient of the loss of the sequences `keep` under all weights, flat."""
    chosen = batch.response_index(keep)
    plan = es.make(spec).plan(es.Tokens(**{k: v[chosen] for k, v in vars(tokens).items() if v is not None}))
    some = batch.select(keep)
    policy.zero_grad()
    for rows in policy.slices(some, torch.arange(len(some)), BUDGET):
        policy.loss(some, rows, plan, some.response_index(rows))[0].backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])


def distances(policy: Policy, rollouts: Rollouts, trainer: Tensor, reward: Tensor) -> list[float]:
    """Return the distances of the gradients as sampled, as sampled and corrected, and of two halves, relative."""
    batch = Batch.of(rollouts)
    owner = torch.repeat_interleave(torch.arange(len(batch)), batch.response_lengths)
    advantage = es.get_advantage("grpo")(reward, rollouts.prompt_index)[owner]
    old = {"logp": trainer, "old_logp": trainer, "rollout_logp": rollouts.logp}
    tokens = es.Tokens(**old, advantage=advantage, seq_id=owner)
    everything, half = torch.arange(len(batch)), rollouts.prompt_index < len(rollouts.prompt_ids) // 2
    own = gradient(policy, batch, tokens, "ppo", everything)
    sampled = gradient(policy, batch, replace(tokens, old_logp=rollouts.logp), "ppo", everything)
    corrected = gradient(policy, batch, tokens, "ppo+rollout_correction", everything)
    first, second = (gradient(policy, batch, tokens, "ppo", everything[mask]) for mask in (half, ~half))
    apart = (sampled - own, corrected - own, (first - second) / 2)
    return [float(vector.norm() / own.norm()) for vector in apart]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a model")
    parser.add_argument("--prompts", type=int, default=16, help="prompts, 8 responses each (16)")
    given = parser.parse_args()
    model, tokenizer = load(given.model)
    policy = Policy(model, layout="shared")
    config = RolloutConfig(prompts=given.prompts, max_new_tokens=96, kv_cache_gib=0.5, max_model_len=512)
    task = generated_task(TaskConfig(name="arithmetic-easy", train_problems=512, test_problems=1))
    questions = task.train_batch(0, given.prompts, 0)
    prompts = encode_all(tokenizer, [question.prompt for question in questions])
    request = Request(prompts, config.sampling, [list(range(given.prompts))], seed=0)
    print("engine          s     |gap|    KL       ratios          clipped  rollout  corrected  halves")
    for name in ("hf", "vllm float32", "vllm bfloat16"):
        kind, _, dtype = name.partition(" ")
        chosen = replace(config, name=kind, dtype=dtype or "auto")  # type: ignore[arg-type]
        rollouts, seconds = sample(given.model, policy, tokenizer, chosen, request)
        trainer = policy.all_stats(Batch.of(rollouts), BUDGET).logp
        asked = [questions[i] for i in rollouts.prompt_index.tolist()]
        reward = torch.tensor([float(v.correct) for v in task.verify(asked, rollouts.texts(tokenizer))])
        sampled, corrected, halves = distances(policy, rollouts, trainer, reward)
        far, ratio = mismatch(trainer, rollouts.logp, Ranks()), (trainer - rollouts.logp).exp()
        print(
            f"{name:13} {seconds:4.1f}  {far['mismatch/logp_gap']:.1e}  {far['mismatch/kl']:+.0e}  "
            f"{ratio.min():.3f} to {ratio.max():.3f}  {float(((ratio - 1).abs() > CLIP).float().mean()):7.2%}  "
            f"{sampled:.1e}  {corrected:.1e}    {halves:.2f}",
            flush=True,
        )
    task.close()


if __name__ == "__main__":
    main()
