"""llmtrain start-entropy: entropy of a model before training, as a target for controllers that hold it.

llmtrain start-entropy Qwen2.5-Math-7B --data DAPO-Math-17k.parquet --max-new-tokens 4096 --rollout vllm --device cuda

The mean over the tokens of the responses to random prompts, at temperature 1 over the whole vocabulary (nats), which is
the metric `entropy` of the first rollout of a run with rollout.temperature 1. Revisiting Entropy (adaptive entropy
regularization) takes that of 1,000 training prompts as its target: .3657.
"""

from pathlib import Path

import numpy as np

from entrostat.settings.commandline import Arguments

from ..data.reading_flags import add_flags, read_as_told
from ..evaluation.asking_flags import add_model_flags


def main(args: list[str]) -> int:
    """Print the start entropy of a model and the target to set, and return exit code 0."""
    parser = Arguments(prog="llmtrain start-entropy", description=__doc__)
    parser.add_argument("model", help="model folder")
    parser.add_argument("--data", required=True, help="parquet, jsonl, json, a folder, or a name on the HF hub")
    parser.add_argument("--prompts", type=int, default=1000, help="random prompts (default %(default)s)")
    parser.add_argument("--out", help="folder of the responses; default runs/start-entropy-MODEL")
    parser.add_argument("--seed", type=int, default=0)
    add_flags(parser)
    add_model_flags(parser, samples=1)
    given = parser.parse_args(args)
    if given.temperature != 1 or given.top_p != 1:
        raise ValueError("start-entropy samples at temperature 1 and top-p 1, as rollouts do: leave these flags out")
    from ..data.selection import random_subset
    from ..evaluation.asking import ask

    questions, _ = read_as_told(given.data, given)
    chosen = random_subset(len(questions), min(given.prompts, len(questions)), given.seed)
    model = Path(given.model)
    out = Path(given.out) if given.out else Path("runs") / f"start-entropy-{model.resolve().name}"
    rows = [
        (sum(line["entropy"] * line["tokens"] for line in lines), sum(line["tokens"] for line in lines))
        for _, lines in ask(model, [questions[i] for i in chosen], given, out)
    ]
    mean, error = token_mean(*np.array(rows, dtype=np.float64).T)
    spread = "" if np.isnan(error) else f" ± {error:.4f} (standard error over prompts)"
    print(
        f"entropy before training: {mean:.4f}{spread} nats, {len(rows):,} prompts, {sum(n for _, n in rows):,} tokens"
    )
    print(f"as a target: --target {mean:.4f}")
    return 0


def token_mean(entropy: np.ndarray, tokens: np.ndarray) -> tuple[float, float]:
    """Return the mean over tokens and its standard error, of a ratio of two sums over prompts (delta method).

    entropy: sum over the tokens of each prompt's responses (Q,), in nats. tokens: their number (Q,).
    The error is NaN for one prompt.
    """
    mean, count = entropy.sum() / tokens.sum(), len(tokens)
    if count < 2:
        return float(mean), float("nan")
    rest = entropy - mean * tokens
    return float(mean), float(np.sqrt(count / (count - 1) * (rest**2).sum()) / tokens.sum())
