"""Families of models under vLLM on a processor, before and after updates of their weights: a column of docs/models.md.

    OMP_NUM_THREADS=1 python -m benchmarks.models_under_vllm qwen3 mixtral      try these, and print what is found

A family is right if the log-probabilities of tokens that vLLM samples are those of the policy: with the weights that it
starts with, with the same ones sent again, and with others.
"""

import logging
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from llmtrain.policy.logits import in_a_line
from llmtrain.policy.lora import whole_weights
from llmtrain.policy.model import save
from llmtrain.policy.policy import Policy
from llmtrain.policy.published import published
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.rollout_engine import Request
from llmtrain.rollout.vllm.vllm_engine import VLLMEngine
from llmtrain.sequences.batch import Batch
from llmtrain.settings.config import RolloutConfig
from llmtrain.settings.sampling import Sampling

ALLOWED = 5e-3
"""Largest difference of log-probabilities allowed (nats): vLLM rounds otherwise."""
PROMPTS = [[41, 42, 43], [50, 51, 52, 53], [60, 61]]
GROWTH = 1.2
"""Factor of the weights in the second update."""
LIMIT = 240
"""Seconds for a family."""


def own_families() -> list[str]:
    """Return the model types whose classes vLLM has implemented."""
    from vllm import ModelRegistry

    known = {
        name
        for name, found in ModelRegistry.models.items()
        if not getattr(found, "class_name", "Transformers").startswith("Transformers")
    }
    return [family for family, name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items() if name in known]


def try_under_vllm(family: str) -> str:
    """Return "" if a family is right under vLLM, otherwise what is not."""
    from .models import build  # which imports this module

    model = build(family, wide=True).eval()
    policy = Policy(model)
    request = Request(PROMPTS, Sampling(samples=2, max_new_tokens=6), [list(range(len(PROMPTS)))], seed=7)
    with tempfile.TemporaryDirectory() as folder:
        save(model, build_char_tokenizer("ab"), Path(folder))
        engine = VLLMEngine(folder, RolloutConfig(kv_cache_gib=0.02, max_model_len=32), [1])
    try:
        for version, stage in enumerate(("from its start on", "after weights were sent", "after new weights")):
            if version:
                engine.update(published(model, whole_weights(model)), version)
            rollouts = engine.submit(request)()
            gap = float((policy.all_stats(Batch.of(rollouts), 1000).logp - rollouts.logp).abs().max())
            if not gap <= ALLOWED:
                return f"computes otherwise {stage}, by {gap:.1e} nats"
            if version == 1:
                with torch.no_grad():
                    for weight in model.parameters():
                        if weight.dim() > 1:
                            weight.mul_(GROWTH)
        return ""
    finally:
        engine.close()


def try_apart(family: str) -> str:
    """Return what `try_under_vllm` finds in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.models_under_vllm", family]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return f"nothing was heard for {LIMIT} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith(f"{family}: ")]
    return lines[-1].removeprefix(f"{family}: ").removeprefix("right") if lines else f"ended with {done.returncode}"


def try_all(families: Sequence[str], at_once: int = 2) -> dict[str, str]:
    """Return what is found about each family, each in a process of its own."""
    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(families, pool.map(try_apart, families), strict=True))


def main(families: Sequence[str]) -> int:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for family in families:
        try:
            found = try_under_vllm(family)
        except Exception as error:
            found = in_a_line(error)
        print(f"{family}: {found or 'right'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
