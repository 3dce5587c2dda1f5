"""What `rollout.old_logp rollout` changes: log-probabilities of the engine in place of the trainer's own pass.

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

import torch
from torch import Tensor

import entrostat as es
from llmtrain.data.prompts import encode_all
from llmtrain.policy.model import load
from llmtrain.policy.policy import Policy
from llmtrain.process.ranks import Ranks
from llmtrain.rollout import stop_ids
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.rollout.mismatch import mismatch
from llmtrain.rollout.rollout_engine import Request
from llmtrain.rollout.vllm.vllm_engine import VLLMEngine
from llmtrain.sequences.batch import Batch
from llmtrain.settings.config import RolloutConfig, TaskConfig
from llmtrain.tasks import generated_task

BUDGET = 4096
CLIP = 0.2


def gradient(policy: Policy, batch: Batch, tokens: es.Tokens, spec: str, keep: Tensor) -> Tensor:
    """Return the gradient of the loss of the sequences `keep` under all weights, flat."""
    chosen = batch.response_index(keep)
    plan = es.make(spec).plan(es.Tokens(**{k: v[chosen] for k, v in vars(tokens).items() if v is not None}))
    some = batch.select(keep)
    policy.zero_grad()
    for rows in policy.slices(some, torch.arange(len(some)), BUDGET):
        policy.loss(some, rows, plan, some.response_index(rows))[0].backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a model")
    parser.add_argument("--prompts", type=int, default=16, help="prompts, 8 responses each (16)")
    given = parser.parse_args()
    model, tokenizer = load(given.model)
    config = RolloutConfig(prompts=given.prompts, max_new_tokens=96, kv_cache_gib=2.0, max_model_len=512)
    task = generated_task(TaskConfig(name="arithmetic-easy", train_problems=512, test_problems=0))
    questions = task.train_batch(0, given.prompts, 0)
    request = Request(
        encode_all(tokenizer, [question.prompt for question in questions]),
        config.sampling,
        [list(range(given.prompts))],
        seed=0,
    )
    policy = Policy(model, layout="shared")
    print(f"{'engine':14} {'s':>5} {'|gap|':>9} {'KL':>10} {'ratios':>16} {'clipped':>8} {'rollout':>8} {'corrected':>9} halves")
    for name in ("hf", "vllm float32", "vllm bfloat16"):
        kind, _, dtype = name.partition(" ")
        settings = replace(config, name=kind, dtype=dtype or "auto")
        if kind == "hf":
            engine = HFEngine(model, tokenizer, settings)
        else:
            engine = VLLMEngine(given.model, settings, stop_ids(model, tokenizer))
        engine.update(model.named_parameters(), 1)
        engine.submit(request)()  # the first call compiles and fills caches
        began = time.perf_counter()
        rollouts = engine.submit(request)()
        seconds = time.perf_counter() - began
        engine.close()
        batch = Batch.of(rollouts)
        trainer = policy.all_stats(batch, BUDGET).logp
        far = mismatch(trainer, rollouts.logp, Ranks())
        asked = [questions[i] for i in rollouts.prompt_index.tolist()]
        reward = torch.tensor([float(v.correct) for v in task.verify(asked, rollouts.texts(tokenizer))])
        owner = torch.repeat_interleave(torch.arange(len(batch)), batch.response_lengths)
        advantage = es.get_advantage("grpo")(reward, rollouts.prompt_index)[owner]
        tokens = es.Tokens(logp=trainer, old_logp=trainer, rollout_logp=rollouts.logp, advantage=advantage, seq_id=owner)
        sequences = torch.arange(len(batch))
        half = rollouts.prompt_index < given.prompts // 2
        own = gradient(policy, batch, tokens, "ppo", sequences)
        parts = [gradient(policy, batch, tokens, "ppo", sequences[mask]) for mask in (half, ~half)]
        as_sampled = replace(tokens, old_logp=rollouts.logp)
        others = [
            gradient(policy, batch, as_sampled, "ppo", sequences),
            gradient(policy, batch, tokens, "ppo+rollout_correction", sequences),
        ]
        apart = [float((other - own).norm() / own.norm()) for other in others]
        noise = float((parts[0] - parts[1]).norm() / 2 / own.norm())
        clipped = float(((trainer - rollouts.logp).exp() - 1).abs().gt(CLIP).float().mean())
        ratios = f"{far['mismatch/ratio_min']:.3f} to {far['mismatch/ratio_max']:.3f}"
        print(
            f"{name:14} {seconds:5.1f} {far['mismatch/logp_gap']:9.1e} {far['mismatch/kl']:10.1e} {ratios:>16} "
            f"{clipped:8.2%} {apart[0]:8.1e} {apart[1]:9.1e} {noise:.2f}",
            flush=True,
        )
    task.close()


if __name__ == "__main__":
    main()
