"""Advantages that aim at more than one response: what MaxRL's follows, and whether pass@k training keeps entropy."""

from collections.abc import Callable
from math import comb

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import get_advantage
from entrostat.numbers.segments import Segments, as_segments

from ..trajectory import Array
from .checks import Values, above, every, numbers_of, settle, told
from .live_case import Live, within
from .memory import remember
from .mutations import Mutation, Swap, always
from .pictures import panels, picture
from .registry import FAILS, HOLDS, Effort, Finding, claim, judge
from .runs import entropies

SIZES = 2, 4, 8
"""Responses of a group, n."""
RATES = torch.tensor([0.02, 0.1, 0.3, 0.5, 0.8, 0.98], dtype=torch.float64)
"""Success probabilities p of a prompt."""
PASS_AT_4, PASS_AT_1 = (f"pass_at_k k={k} variant=analytic" for k in (4, 1))
TASKS = "noisy", "det"
Estimate = Callable[[Tensor, Segments], Tensor]


def max_rl(reward: Tensor, groups: Segments) -> Tensor:
    return get_advantage("max_rl")(reward, groups)


def without_baseline(reward: Tensor, groups: Segments) -> Tensor:
    """Return R/mean, the average over successes alone; 0 in a group without one."""
    return reward / groups.spread(groups.mean(reward)).clamp(min=1e-9)


def expected_weight(size: int, rates: Tensor = RATES, estimate: Estimate | None = None) -> Tensor:
    """Return w of E[mean of A·∇log π] = w·∇p over all groups of `size` responses, at each success probability p.

    Given its reward, a response's ∇log π has the mean ∇p/p or −∇p/(1 − p). estimate: the advantage; None: `max_rl`.
    """
    groups, weight = as_segments(torch.zeros(size, dtype=torch.int64)), torch.zeros_like(rates)
    for right in range(size + 1):
        reward = (torch.arange(size) < right).double()
        advantage = (estimate or max_rl)(reward, groups)
        score = torch.where(reward.bool(), 1 / rates[:, None], -1 / (1 - rates[:, None]))
        chance = comb(size, right) * rates**right * (1 - rates) ** (size - right)
        weight += chance * (advantage * score).mean(-1)
    return weight


def truncated(order: int, rates: Tensor = RATES) -> Tensor:
    """Return w of the gradient of Σ_{k≤order} pass@k/k, at each success probability p: Σ_{k≤order} (1 − p)^(k−1)."""
    return sum(((1 - rates) ** k for k in range(order)), torch.zeros_like(rates))


@claim(
    "max-rl-order",
    paper="MaxRL",
    source="the advantage with its baseline; prime-rl names the group's size as the order",
    words="the expected gradient of (R − mean)/mean in groups of n is that of log p, expanded in pass@k up to k = n",
    statement=(
        r"\mathbb{E}\Big[\tfrac{1}{n}\textstyle\sum_i \tfrac{R_i - \bar R}{\bar R}\,\nabla \log \pi(y_i)\Big]",
        r"= \textstyle\sum_{k=1}^{n} \tfrac{1}{k}\,\nabla\,\mathrm{pass@}k",
    ),
    assumption="rewards of 0 and 1; a group without a success has advantage 0; n of 2, 4 and 8, p from .02 to .98; the "
    "mean over all groups, exactly",
    threshold="within 1e-9 of the expansion, relative",
    null="REINFORCE, the order 1",
    expected=FAILS,
    mutations=(Mutation("the mean were not subtracted", Swap(__name__, "max_rl", always(without_baseline))),),
    live=Live("group-weight", turned={"baseline": False}),
)
def max_rl_order(effort: Effort) -> Finding:
    """The order is n − 1. The mean over successes, R/mean, has the order n, as the paper's theorem says; subtracting
    ∇log π of all responses costs nothing if it is done in every group, but a group without a success is left out, where
    its mean is −∇p/(1 − p): the last term is lost. A group of n pays for n − 1."""
    found = {size: expected_weight(size) for size in SIZES}
    stated = max(float((found[n] / truncated(n) - 1).abs().max()) for n in SIZES)
    lower = max(float((found[n] / truncated(n - 1) - 1).abs().max()) for n in SIZES)
    return Finding(
        f"largest relative distance from the order n: {stated:.2g}, from the order n − 1: {lower:.0e}",
        {"distance from order n": stated, "distance from order n − 1": lower},
        judge(stated < 1e-9),
        null=f"distance of order 1: {max(float((found[n] - 1).abs().max()) for n in SIZES):.2g}",
    )


@remember
def observed(effort: Effort, task: str, advantage: str) -> Array:
    """Return the entropy in a task, (runs, rollouts + 1)."""
    return entropies(effort, env=task, advantage=advantage)


def by_task(values: dict[str, Values]) -> str:
    return ", ".join(f"{task} {told(each)}" for task, each in values.items())


@claim(
    "pass-at-k-entropy",
    paper="Pass@k training",
    source="section 3 (arXiv 2508.10751)",
    words="training on pass@k keeps the entropy above that of training on pass@1",
    statement=r"H_{\mathrm{end}}(\mathrm{pass@}4) > H_{\mathrm{end}}(\mathrm{pass@}1)",
    assumption="noisy and det, groups of 16, the analytic advantage with k = 4 and k = 1",
    setting="Qwen2.5-7B-Instruct on mazes and puzzles",
    threshold="a higher final entropy with k = 4 in the mean over paired runs, in both tasks",
    null="GRPO, which differs from k = 1 by the factor √(1 − 1/n) alone",
    expected=HOLDS,
    mutations=(Mutation("k were 1", Swap(__name__, "PASS_AT_4", always(PASS_AT_1))),),
    live=Live("pass-at-k", turned={"k": 1}, conditions=(within("k", low=2),)),
)
def pass_at_k_entropy(effort: Effort) -> Finding:
    """It holds because learning stops where nearly all sets of k pass: a prompt solved half the time passes at k = 4 in
    15 of 16 sets. What is kept up is the entropy of prompts that are solved, at the price of reward; it finds no rare
    answer that was never sampled."""
    effort = effort.times(4)
    ends = {
        name: {task: observed(effort, task, name)[:, -1] for task in TASKS} for name in (PASS_AT_4, PASS_AT_1, "grpo")
    }
    gains, null = ({task: ends[name][task] - ends[PASS_AT_1][task] for task in TASKS} for name in (PASS_AT_4, "grpo"))
    verdict, doubt = settle(every(above(gain) for gain in gains.values()))
    return Finding(
        f"H at the end above that of k = 1: {by_task(gains)}",
        numbers_of(gains),
        verdict,
        null=f"GRPO: {by_task(null)}",
        false_failure=doubt,
    )


@picture("pass-at-k-entropy", caption="Entropy in noisy and det when pass@1 and pass@4 are trained.")
def draw_entropies(figure: Figure, effort: Effort) -> None:
    trained, effort = {"pass@1": PASS_AT_1, "pass@4": PASS_AT_4}, effort.times(4)
    panels(figure, {task: {k: observed(effort, task, name) for k, name in trained.items()} for task in TASKS})
