"""Gain by branching at uncertain tokens (FR3E 2507.07017, TreeAdv 2601.03703), on the small model.

    python -m benchmarks.branching train runs/branching/grpo-0 --seed 0              160 steps, 512 held-out problems
    python -m benchmarks.branching train runs/branching/branch-0 --seed 0 --branch
    python -m benchmarks.branching table docs/data/branching                         GRPO against branching

With --branch half of a group's responses are sampled as ever, and each of them is continued once more from its most
uncertain token, by the entropy of the policy there: the second half. Tokens that two responses share are trained twice,
with the advantage of each, which sums to the mean advantage of the two at that node.
"""

import argparse
import gzip
import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from llmtrain.cli import main as llmtrain
from llmtrain.kernels.head import HeadStats
from llmtrain.rollout.hf import HFRollout
from llmtrain.sequences.rollouts import Rollouts

PROTOCOL = shlex.split(
    "--preset countdown-cpu --steps 160 --threads 1 --save-every 160 --eval.every 80 --task.test-problems 512 "
    "--log.no-tensorboard"
)
KEPT = ("step", "entropy", "reward", "eval/avg@8", "eval/pass@8")
ENTROPY = HeadStats._fields.index("entropy")
plain = HFRollout.generate


def branched(
    self: HFRollout,
    prompt_ids: Sequence[list[int]],
    n: int,
    mine: Sequence[int] | None = None,
    uniforms: Sequence[Tensor] | None = None,
) -> Rollouts:
    """Sample as `HFRollout.generate` does, the second half of each group from tokens of the first."""
    if self.rows == 1:  # an evaluation
        return plain(self, prompt_ids, n, mine, uniforms)
    assert uniforms is not None
    half = n // 2
    first = plain(self, prompt_ids, half, mine, [u[:half] for u in uniforms])
    assert first.stats is not None
    lengths = first.response_lengths.tolist()
    tokens, stats = first.response_ids.split(lengths), first.stats.split(lengths, 1)
    cuts = [int(of[ENTROPY].argmax()) for of in stats]
    owners = first.prompt_index.tolist()
    begun = [prompt_ids[i] + x[:cut].tolist() for i, x, cut in zip(owners, tokens, cuts, strict=True)]
    draws = [uniforms[i][None, half + j % half, cut:] for j, (i, cut) in enumerate(zip(owners, cuts, strict=True))]
    second = plain(self, begun, 1, None, draws)
    assert second.stats is not None
    more = second.response_lengths.tolist()
    new_tokens, new_stats = second.response_ids.split(more), second.stats.split(more, 1)
    whole = [torch.cat([x[:cut], y]) for x, cut, y in zip(tokens, cuts, new_tokens, strict=True)]
    of_whole = [torch.cat([x[:, :cut], y], 1) for x, cut, y in zip(stats, cuts, new_stats, strict=True)]
    order = torch.cat([first.prompt_index, first.prompt_index]).argsort(stable=True).tolist()
    responses, numbers = [*tokens, *whole], [*stats, *of_whole]
    ended = torch.cat([first.finished, second.finished])
    joined = torch.cat([numbers[i] for i in order], 1)
    return Rollouts(
        prompt_ids=list(prompt_ids),
        response_ids=torch.cat([responses[i] for i in order]),
        response_lengths=torch.tensor([len(responses[i]) for i in order]),
        logp=joined[0],
        prompt_index=torch.tensor([owners[i % len(owners)] for i in order]),
        finished=ended[torch.tensor(order)],
        stats=joined,
    )


def table(folder: Path) -> None:
    """Print means over seeds, with twice their standard errors, and the difference of the two rules."""
    found: dict[str, list[list[float]]] = {}
    for run in sorted(folder.glob("*.json.gz")):
        lines = json.loads(gzip.decompress(run.read_bytes()))
        late = [[line[k] for line in lines if k in line] for k in ("entropy", "reward")]
        last = [[line[k] for line in lines if k in line][-1] for k in ("eval/avg@8", "eval/pass@8")]
        found.setdefault(run.name.partition("-")[0], []).append(
            [*(float(np.mean(x[-len(x) // 3 :])) for x in late), *last]
        )
    values = {kind: np.array(rows) for kind, rows in found.items()}
    error = {kind: rows.std(0, ddof=1) / len(rows) ** 0.5 for kind, rows in values.items()}
    print("| | entropy | reward | avg@8 | pass@8 |\n|---|---|---|---|---|")
    for kind, rows in values.items():
        cells = [f"{m:.3f} ±{2 * e:.3f}" for m, e in zip(rows.mean(0), error[kind], strict=True)]
        print(f"| {kind}, {len(rows)} seeds | {' | '.join(cells)} |")
    apart = values["branch"].mean(0) - values["grpo"].mean(0)
    errors = np.hypot(error["branch"], error["grpo"])
    print(f"| difference | {' | '.join(f'{m:+.3f} ±{2 * e:.3f}' for m, e in zip(apart, errors, strict=True))} |")


def keep(run: Path) -> None:
    """Write what the table needs of a run beside it, in a few kilobytes."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    kept = [{k: line[k] for k in KEPT if line.get(k) is not None} for line in lines]
    run.with_suffix(".json.gz").write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--branch", action="store_true")
    given = parser.parse_args()
    if given.what == "table":
        table(given.folder)
        return
    if given.branch:
        HFRollout.generate = branched  # type: ignore[method-assign]
    llmtrain(["train", *PROTOCOL, "--seed", str(given.seed), "--out", str(given.folder)])
    keep(given.folder)


if __name__ == "__main__":
    main()
