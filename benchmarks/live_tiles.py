"""Share of the output layer's gradient that is not small enough to be left out; writes a table of docs/benchmarks.md.

    python -m benchmarks.live_tiles MODEL... [--tokens 3072]

A kernel may leave out a tile of tokens × vocabulary if no probability in it exceeds a threshold, as Cut Cross-Entropy
does below 2⁻¹², the least that bf16 adds to 1. Whether that saves anything depends on how many tiles are left, and so
on the policy. Each MODEL samples responses to arithmetic questions; tokens lie in the order of a batch.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from benchmarks import fused_head
from torch import Tensor
from transformers import PreTrainedModel

from llmtrain.data.prompts import encode_all
from llmtrain.kernels import timing
from llmtrain.policy.model import load
from llmtrain.rollout.hf import HFRollout
from llmtrain.sequences.rollouts import Rollouts
from llmtrain.settings.presets import get_preset
from llmtrain.tasks import get_task

TOKENS, VOCABULARY = 128, 256
"""Sizes of a tile, Cut Cross-Entropy's."""
THRESHOLDS = (12, 8)
"""Negative powers of 2."""
PROMPTS = 64


def probabilities(model: PreTrainedModel, rollouts: Rollouts, temperature: float) -> Iterator[Tensor]:
    """Yield the probabilities (TOKENS, V) of successive response tokens, by the model's own logits."""
    held = torch.empty(0)
    for owner, response in zip(rollouts.prompt_index.tolist(), rollouts.responses(), strict=True):
        ids = torch.tensor([rollouts.prompt_ids[owner] + response])
        with torch.no_grad():
            logits = model(ids, logits_to_keep=len(response) + 1).logits[0, :-1]
        held = torch.cat([held.view(-1, logits.shape[1]), (logits / temperature).softmax(-1)])
        if len(held) >= TOKENS:
            yield held[:TOKENS]
            held = held[TOKENS:]


def drawn(vocabulary: int) -> Iterator[Tensor]:
    """Yield probabilities (TOKENS, V) of the logits that the head's benchmark draws."""
    hidden, weight, _, _ = timing.inputs(timing.Case("fused", 4 * TOKENS, 512, vocabulary))
    for part in hidden.float().split(TOKENS):
        yield (part @ weight.float().T).softmax(-1)


def measure(parts: Iterable[Tensor]) -> tuple[float, list[float]]:
    """Return the mean entropy (nats), and the share of tiles with a probability above each threshold."""
    entropy, live, count = 0.0, [0] * len(THRESHOLDS), 0
    for p in parts:
        entropy += float(-(p * p.clamp_min(1e-30).log()).sum(-1).mean())
        padded = torch.nn.functional.pad(p, (0, -p.shape[1] % VOCABULARY))
        largest = padded.view(TOKENS, -1, VOCABULARY).amax((0, 2))
        live = [had + int((largest > 2.0**-x).sum()) for had, x in zip(live, THRESHOLDS, strict=True)]
        count += 1
    tiles = count * len(largest)
    return entropy / count, [had / tiles for had in live]


def table(folders: list[str], tokens: int) -> Iterator[str]:
    yield "| logits of | V | temperature | entropy, nats | " + " | ".join(f"above 2^-{x}" for x in THRESHOLDS) + " |"
    yield "|---|--:|--:|--:|" + "--:|" * len(THRESHOLDS)
    for vocabulary in (32_768, 151_936):
        yield row("drawn at random, as above", vocabulary, 1.0, measure(drawn(vocabulary)))
    questions = get_task(get_preset("smollm-cpu")).train_batch(0, PROMPTS, 0)
    for folder in folders:
        model, tokenizer = load(folder)
        prompts = encode_all(tokenizer, [question.prompt for question in questions])
        for temperature in (0.7, 1.0):
            generator = torch.Generator().manual_seed(0)
            sampler = HFRollout(model, tokenizer, max_new_tokens=32, temperature=temperature, generator=generator)
            rollouts = sampler.generate(prompts, max(1, tokens // (PROMPTS * 24)))
            found = measure(probabilities(model.eval(), rollouts, temperature))
            yield row(Path(folder).name, model.config.vocab_size, temperature, found)


def row(name: str, vocabulary: int, temperature: float, found: tuple[float, list[float]]) -> str:
    shares = " | ".join(f"{share:.0%}" for share in found[1])
    return f"| {name} | {vocabulary:,} | {temperature:g} | {found[0]:.2f} | {shares} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="folders")
    parser.add_argument("--tokens", type=int, default=3072)
    given = parser.parse_args()
    lines = []
    for line in table(given.models, given.tokens):
        print(line, flush=True)
        lines.append(line)
    fused_head.store({"tiles": "\n".join(lines)})


if __name__ == "__main__":
    main()
