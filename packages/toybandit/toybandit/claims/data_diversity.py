"""Less data and more similar data: Revisiting Entropy, section 6.3 and table 3."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..config import Config
from ..environments import ENVIRONMENTS, Table
from ..problem import draw_problem
from ..simulator import simulate
from .checks import Values, above, every, numbers_of, rising, settle, told
from .live_case import Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap
from .registry import Effort, Finding, claim, holds_if
from .runs import entropies

PAPER = "Revisiting Entropy"
PROMPTS, ROLLOUTS = 64, 50
"""Prompts of the largest data set, and rollouts in which each of them is used once."""
SIZES = (64, 32, 16)
"""Prompts of the data sets, all trained on for PROMPTS·ROLLOUTS uses of a prompt."""
CLUSTERS = 8
"""Groups of similar prompts in the less diverse set."""
SHARED = 0.3
"""Share of a prompt's update that each similar prompt gets."""
LEAST = 0.05
"""Smallest effect of similar prompts that counts, nats."""
ENVS = {"used once": "on", "reused": "noisy"}
"""Environments by the reuse of samples."""


def rollouts_of(prompts: int) -> int:
    """Return the rollouts of a data set with as many uses of prompts in all."""
    return PROMPTS * ROLLOUTS // prompts


@remember
def of_size(effort: Effort, env: str, prompts: int, rollouts: int) -> Values:
    """Return the final entropy of data sets of this size, (runs,)."""
    return entropies(effort, env=env, states=prompts, rollouts=rollouts)[:, -1]


def rows(table: torch.Tensor) -> Table:
    """Return a tensor as a table of the configuration."""
    return tuple(map(tuple, table.tolist()))


@remember
def similar(effort: Effort, env: str, shared: float, alike: bool = True, passes: int | None = None) -> Values:
    """Return the final entropy of PROMPTS prompts in CLUSTERS groups, (runs,).

    Prompts of a group share their updates by `shared`; `alike`: also their initial policy and right arms.
    """
    group = torch.arange(PROMPTS) // (PROMPTS // CLUSTERS)
    kernel = (group.unsqueeze(-1) == group).double().mul(shared).fill_diagonal_(1.0)
    ends = []
    for seed in range(effort.runs):
        problem = draw_problem(replace(ENVIRONMENTS[env], states=PROMPTS), torch.tensor([seed]), torch.float64)
        tables = (x[0][group * (PROMPTS // CLUSTERS)] if alike else x[0] for x in problem)
        logits, success = map(rows, tables)
        numbers: dict[str, Any] = {"states": PROMPTS, "rollouts": ROLLOUTS, "passes": passes, "logit_std": 0.0}
        config = Config(env=env, logits=logits, success=success, kernel=rows(kernel), **numbers)
        ends.append(simulate(config, [seed]).entropy[0, -1])
    return np.array(ends)


ONCE = "samples are used once"


@claim(
    "data-diversity",
    paper=PAPER,
    source="section 6.3 and appendix D.3, table 3",
    words="the entropy declines as the diversity of the training data does: it is lower with less data, and lower with "
    "clusters of similar prompts than with as many prompts at random",
    statement=(
        r"N_1 < N_2 \ \Rightarrow\ H_{\mathrm{end}}(N_1) < H_{\mathrm{end}}(N_2),",
        r"H_{\mathrm{end}}(\text{similar}) < H_{\mathrm{end}}(\text{unlike})",
    ),
    assumption=f"{SIZES[-1]} to {PROMPTS} prompts, {PROMPTS * ROLLOUTS:,} uses of a prompt in all; similar prompts "
    f"share {SHARED:g} of their updates, their start and their right arms. Used once (on), reused in 8 passes (noisy)",
    setting="Qwen2.5-Math-7B on 616 to 17,000 problems; k-means clusters of embeddings. The order is not kept by all: "
    "5,031 clustered problems have more entropy than as many at random, and 2,538 at random more than 5,031",
    threshold="final H falls with each smaller set, and with similar prompts is lower than with the same prompts "
    f"unconnected, by at least {LEAST:g} nats, in paired runs, in both environments: the paper ranks numbers",
    null="the same uses of each prompt; for similarity, connected prompts with unlike answers: neither may lower H by "
    "a quarter of the effect",
    expected=holds_if(ONCE),
    mutations=(
        Mutation("each prompt were used as often", Swap(__name__, "rollouts_of", lambda f: lambda prompts: ROLLOUTS)),
        Mutation(
            "similar prompts shared nothing",
            Swap(__name__, "similar", lambda f: lambda effort, env, shared, alike=True: f(effort, env, 0.0, alike)),
        ),
    ),
    live=Live(
        "data-diversity",
        turned={"passes": 8},
        conditions=(equals("passes", 1, stated=False), within("shared", low=0.1)),
    ),
)
def data_diversity(effort: Effort) -> Finding:
    """Less data is used more often in as many updates, and that is all: with as many uses of each prompt, the number of
    prompts does not matter. Similar prompts are one prompt used more often, to the degree that they share weights and
    answers; shared weights with unlike answers change nothing. Under the clip of reused samples a prompt gains little
    from its neighbours' updates, and similar prompts end no lower."""
    lines, checks, nulls = [], {}, []
    numbers: dict[str, Values] = {}
    for name, env in ENVS.items():
        ends = {n: of_size(effort, env, n, rollouts_of(n)) for n in SIZES}
        visits = {n: of_size(effort, env, n, ROLLOUTS) for n in SIZES}
        half = effort.times(0.5)
        together, apart, unlike = (similar(half, env, *at) for at in ((SHARED,), (0.0,), (SHARED, False)))
        alone = similar(half, env, 0.0, False)
        fewer, closer = ends[SIZES[-1]] - ends[PROMPTS], together - apart
        checks[name] = (
            rising(*(ends[n] for n in reversed(SIZES))) & above(-closer, LEAST),
            rising(fewer / 4, visits[SIZES[-1]] - visits[PROMPTS]) & rising(closer / 4, unlike - alone),
        )
        lines.append(
            f"{name}: "
            + ", ".join(f"{n} prompts {told(x)}" for n, x in ends.items())
            + f"; similar {told(together)}, unconnected {told(apart)}"
        )
        nulls.append(
            f"{name}: "
            + ", ".join(f"{n} prompts {told(x)}" for n, x in visits.items())
            + f"; connected, unlike {told(unlike)}, unconnected {told(alone)}"
        )
        numbers |= {f"final H, {name}, {n} prompts": x for n, x in ends.items()}
        numbers |= {f"final H, {name}, {what}": x for what, x in (("similar", together), ("unconnected", apart))}
    once = every(checks["used once"])
    return Finding(
        f"final H, {'. '.join(lines)}",
        numbers_of(numbers),
        *settle(every(checks["reused"]) & once, ONCE, once),
        null=f"final H, {'. '.join(nulls)}",
    )
