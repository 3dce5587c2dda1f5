"""Tokens per second of the rollout engines, and milliseconds to send them weights, on this machine.

    OMP_NUM_THREADS=1 python -m benchmarks.rollout [--ways]

The presets' model (0.86M parameters, random weights), 64 prompts with 8 responses each of at most 64 tokens. --ways:
the ways in which `hf` decodes, in turn, also for 32 prompts and 16 tokens, as a table.
"""

import argparse
import statistics
import tempfile
import time

import torch
from transformers import PreTrainedModel

from llmtrain.data.prompts import encode_all
from llmtrain.policy.attention import attend_by_sequence
from llmtrain.policy.model import build_tiny, save
from llmtrain.rollout.hf import HFRollout, stop_ids, ways
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.rollout.rollout_engine import Request
from llmtrain.rollout.vllm.vllm_engine import VLLMEngine
from llmtrain.settings.config import RolloutConfig, TrainConfig
from llmtrain.tasks import get_task

PROMPTS, N, ROUNDS = 64, 8, 5


def in_ways() -> None:
    """Print the tokens per second of each way in which the model may be sampled."""
    task = get_task(TrainConfig())
    tokenizer = task.build_tokenizer(0)
    model = attended(build_tiny(len(tokenizer)))
    print("| prompts | tokens | " + " | ".join(f"{way}, tokens/s" for way in ways(model)) + " |")
    print("|--:|--:|" + "--:|" * len(ways(model)))
    for prompts, tokens in ((32, 16), (64, 64)):
        ids = encode_all(tokenizer, [question.prompt for question in task.train_batch(0, prompts, 0)])
        speeds: dict[str, list[float]] = {way: [] for way in ways(model)}
        for _ in range(ROUNDS + 1):
            for way in ways(model):
                generator = torch.Generator().manual_seed(0)
                sampler = HFRollout(model, tokenizer, max_new_tokens=tokens, generator=generator, stats=True, way=way)
                began = time.perf_counter()
                drawn = sampler.generate(ids, N)
                speeds[way].append(len(drawn.response_ids) / (time.perf_counter() - began))
        print(
            f"| {prompts} | {tokens} | "
            + " | ".join(f"{statistics.median(x[1:]):,.0f}" for x in speeds.values())
            + " |"
        )


def attended(model: PreTrainedModel) -> PreTrainedModel:
    """Return the model with the trainer's attention, on which the ways depend."""
    attend_by_sequence(model)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", action="store_true")
    if parser.parse_args().ways:
        return in_ways()
    config = RolloutConfig(max_new_tokens=64, kv_cache_gib=0.5)
    task = get_task(TrainConfig())
    tokenizer = task.build_tokenizer(0)
    model = build_tiny(len(tokenizer))
    prompts = [question.prompt for question in task.train_batch(0, PROMPTS, 0)]
    request = Request(encode_all(tokenizer, prompts), config.sampling, [list(range(PROMPTS))], seed=0)
    with tempfile.TemporaryDirectory() as folder:
        save(model, tokenizer, folder)
        began = time.perf_counter()
        vllm = VLLMEngine(folder, config, stop_ids(model, tokenizer))
        print(f"vllm starts in {time.perf_counter() - began:.1f} s; {torch.get_num_threads()} threads")
        for name, engine in {"hf": HFEngine(model, tokenizer, config), "vllm": vllm}.items():
            speeds, syncs = [], []
            for version in range(1, ROUNDS + 1):
                began = time.perf_counter()
                engine.update(model.named_parameters(), version)
                syncs.append(time.perf_counter() - began)
                began = time.perf_counter()
                tokens = len(engine.submit(request)().response_ids)
                speeds.append(tokens / (time.perf_counter() - began))
            print(f"{name:5} {statistics.median(speeds):,.0f} tokens/s, sync {1e3 * statistics.median(syncs):.1f} ms")
        vllm.close()


if __name__ == "__main__":
    main()
