"""Families of models that can be trained: docs/models.md, by trying each of them with random weights on a processor.

    OMP_NUM_THREADS=1 python -m benchmarks.models                 try all of them, 20 minutes, and write the page
    python -m benchmarks.models --only qwen3 gemma4                try these, and print their rows

A family is right if a policy's log-probabilities and entropies are those of the model's own logits in a layout, its
gradients those of autograd through these logits, and the log-probabilities of sampled tokens those of the policy.
Everything else is refused, with a line that says why.
"""

import argparse
import logging
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedModel
from vllm.version import __version__ as VLLM

from llmtrain.policy.logits import PLAIN, Transform, in_a_line, still
from llmtrain.policy.policy import Policy
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf import HFRollout
from llmtrain.rollout.sampling_proof import way_to_sample
from llmtrain.sequences.batch import Batch
from llmtrain.sequences.layout import LAYOUTS

from .model_families import FAMILIES, tiny
from .models_under_vllm import ALLOWED as ALLOWED_UNDER_VLLM
from .models_under_vllm import own_families, try_all

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
LARGEST = 25_000_000
"""Parameters of the largest model that is tried."""
SPREAD = 3.0
"""Factor of the random weights, so that tokens matter to each other."""
ALLOWED = 1e-3
"""Largest difference allowed: of log-probabilities (nats), and of gradients, relative to the largest."""
TOKENS = 6
"""Tokens of a sampled response."""
HEAD = f"""# Models

Made by `python -m benchmarks.models` with transformers {transformers.__version__}: every model type that its
`AutoModelForCausalLM` knows, tried with random weights and small sizes in fp32. `right` in a layout: log-probabilities
and entropies are those of the model's own logits, and gradients those of autograd through these logits, within
{ALLOWED:g}. `right` under `hf`: so are the log-probabilities of tokens that were sampled. `right` under `vllm`: so are
those of the families that vLLM {VLLM} has implemented, on a processor, from the start, after an update with
the same weights and after one with others, within {ALLOWED_UNDER_VLLM:g} (vLLM rounds otherwise). Whatever is not right
in a layout or under `hf` is refused before a run starts; a run with an engine that computes otherwise is stopped by the
[guard](trainer.md) of the mean gap. The check of a model, which finds how it makes its logits, runs whenever a policy
is made, also for models that are not in this table; it takes less than a second for a model of this size, and reads
{TOKENS * 4} tokens of a large one. Logits: what happens to the products of the output layer.

"""


NOT_TRIED = "not tried"


@dataclass
class Row:
    """Findings about a family."""

    family: str
    model: str = ""
    """Its class."""
    layouts: dict[str, str] = field(default_factory=dict)
    """"" for right, otherwise why not, by layout."""
    sampling: str = NOT_TRIED
    """"" for right, otherwise why not."""
    vllm: str = NOT_TRIED
    """"" for right, otherwise why not."""
    transform: Transform = PLAIN
    untried: str = ""
    """Why no model was made."""

    @property
    def right(self) -> bool:
        return "" in self.layouts.values() and not self.sampling

    @property
    def refused(self) -> str:
        """Reason for which the padded layout, and so the family, is refused."""
        return self.layouts.get("padded", "") if self.layouts else self.untried


def build(family: str, wide: bool = False) -> PreTrainedModel:
    """Return a model with random weights. Raises ValueError if it would be large."""
    config = tiny(family, wide)
    with torch.device("meta"):
        size = sum(weight.numel() for weight in AutoModelForCausalLM.from_config(config).parameters())
    if size > LARGEST:
        raise ValueError(f"the smallest model that this page makes of it has {size / 1e6:.0f} million parameters")
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(SPREAD)
    return model


def try_family(family: str) -> Row:
    """Return what is found about one family."""
    row = Row(family)
    try:
        model = build(family)
    except Exception as error:
        row.untried = in_a_line(error)
        return row
    row.model = type(model).__name__
    try:
        expected = own_gradients(model)
    except Exception as error:
        row.untried = f"the model itself does not run: {in_a_line(error)}"
        return row
    for layout in LAYOUTS:
        try:
            policy = Policy(model, layout=layout)
            row.transform = policy.output.transform
            row.layouts[layout] = gradients(policy, expected)
        except ValueError as error:
            row.layouts[layout] = str(error)
    if "" in row.layouts.values():
        row.sampling = sampling(model, next(name for name, reason in row.layouts.items() if not reason))
    return row


def batch_of(model: PreTrainedModel) -> Batch:
    """Return three sequences of different lengths, two with the same prompt."""
    first = torch.arange(40, 40 + 9)
    parts = [first, torch.cat([first[:4], torch.arange(60, 65)]), torch.arange(70, 77)]
    prompts, lengths = torch.tensor([4, 4, 2]), torch.tensor([len(part) for part in parts])
    return Batch(torch.cat(parts), prompts, lengths - prompts)


def gradients(policy: Policy, expected: Sequence[torch.Tensor]) -> str:
    """Return "" if the gradient of the sum of log-probabilities and entropies is `expected`."""
    model, batch = policy.model.eval(), batch_of(policy.model)
    sequences = torch.arange(len(batch))
    try:
        found = gradient_of(model, lambda: sum(x.sum() for x in policy.token_stats(batch, sequences)[:2]))
    except Exception as error:
        return in_a_line(error)
    largest = max(float(x.abs().max()) for x in expected)
    gap = max(float((x - y).abs().max()) for x, y in zip(found, expected, strict=True)) / largest
    return "" if gap <= ALLOWED else f"gradients differ by {gap:.1e} of the largest"


def own_gradients(model: PreTrainedModel) -> list[torch.Tensor]:
    """Return the gradient of that sum by the model's own logits."""
    batch = batch_of(model.eval())
    return gradient_of(model, lambda: sum(own_total(model, batch, i) for i in range(len(batch))))


def own_total(model: PreTrainedModel, batch: Batch, index: int) -> Any:
    """Return the sum of log-probabilities and entropies of a sequence's response, by the model's own logits."""
    one = batch.select(torch.tensor([index]))
    logp = model(input_ids=one.ids[None], use_cache=False).logits[0, int(one.prompt_lengths) - 1 : -1].log_softmax(-1)
    taken = logp.gather(-1, one.ids[int(one.prompt_lengths) :, None]).sum()
    return taken - (logp.exp() * logp).sum()


def gradient_of(model: PreTrainedModel, total: Any) -> list[torch.Tensor]:
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    found = torch.autograd.grad(total(), weights, allow_unused=True)
    return [torch.zeros_like(w) if x is None else x for w, x in zip(weights, found, strict=True)]


def sampling(model: PreTrainedModel, layout: str) -> str:
    """Return "" if sampled tokens have the log-probabilities that the policy gives them."""
    prompts = [[41, 42, 43, 44, 45], [50, 51], [60, 61, 62]]
    tokenizer, generator = build_char_tokenizer("ab"), torch.Generator().manual_seed(0)
    try:
        way = way_to_sample(model, tokenizer)
        rollout = HFRollout(model, tokenizer, max_new_tokens=TOKENS, generator=generator, way=way)
        with still(model):
            rollouts = rollout.generate(prompts, 2)
            policy = Policy(model, layout=layout)
            logp = policy.all_stats(Batch.of(rollouts), 1000).logp
    except Exception as error:
        return in_a_line(error)
    gap = float((logp - rollouts.logp).abs().max())
    return "" if gap <= ALLOWED else f"sampled with other log-probabilities, by {gap:.1e} nats"


def page(rows: Sequence[Row]) -> str:
    tried = [row for row in rows if row.layouts]
    right = [row for row in tried if row.right]
    lines = [
        f"{len(right)} of {len(rows)} are right in a layout and under `hf`; "
        f"{len(tried) - len(right)} are refused in part or whole; {len(rows) - len(tried)} were not tried.",
        "",
        "| model_type | class | padded | packed | shared | `hf` | `vllm` | logits |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in tried:
        cells = ["right" if not row.layouts[name] else "refused" for name in LAYOUTS]
        engines = ["right" if not found else "–" if found == NOT_TRIED else "no" for found in (row.sampling, row.vllm)]
        lines.append("| " + " | ".join([f"`{row.family}`", row.model, *cells, *engines, logits(row.transform)]) + " |")
    lines += ["", "## Why refused", "", "| model_type | where | why |", "|---|---|---|"]
    for row in tried:
        told = {name: reason for name, reason in row.layouts.items() if reason}
        if len(told) == len(LAYOUTS):
            told = {"everywhere": row.refused}
        told |= {
            f"`{engine}`": found
            for engine, found in (("hf", row.sampling), ("vllm", row.vllm))
            if found not in ("", NOT_TRIED)
        }
        lines += [f"| `{row.family}` | {where} | {reason.replace('|', '/')} |" for where, reason in told.items()]
    lines += ["", "## Not tried", "", "| model_type | why |", "|---|---|"]
    lines += [f"| `{row.family}` | {row.untried.replace('|', '/')} |" for row in rows if not row.layouts]
    return HEAD + "\n".join(lines) + "\n"


def logits(transform: Transform) -> str:
    """Return what happens to the products of the output layer, such as "0.0625 x, at most 30"."""
    factor = transform.before * transform.scale
    told = [] if factor == 1 else [f"× {factor:.4g}"]
    told += [] if transform.cap is None else [f"capped at {transform.cap:g}"]
    return ", ".join(told) or "as they are"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, metavar="TYPE", help="try these model types")
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rows = []
    for at, family in enumerate(given.only or FAMILIES):
        rows.append(try_family(family))
        print(f"\r{at + 1}/{len(given.only or FAMILIES)} {family:40s}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    known = own_families()
    tried = [row for row in rows if row.right and row.family in known]
    for row, found in zip(tried, try_all([row.family for row in tried]).values(), strict=True):
        row.vllm = found
    if given.only:
        print(page(rows).removeprefix(HEAD))
    else:
        PAGE.write_text(page(rows))
        print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
