"""Baselines of each token: which has the least variance, and what a group of responses makes of it."""

from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import get_advantage

from .ensembles import random_logits, random_vector
from .live_case import Live, equals, within
from .mutations import Mutation, Swap, always
from .pictures import picture
from .registry import Effort, Finding, claim, holds_if, judge

PAPER = "Optimal Token Baseline"
"""The Optimal Token Baseline: Variance Reduction for Long-Horizon LLM-RL, arXiv 2602.07078."""
ARMS = 3
SPREAD = 2.0
"""Standard deviation of the logits."""
LENGTHS = 1, 2, 3, 4
"""Tokens of a response, L; all ARMS^L responses are enumerated."""
GROUP, GROUPS = 4, 40
"""Responses of a group, and the most instances of which all groups are enumerated."""
ROUNDING = 1e-9
"""Relative difference of two variances that counts as none."""


class Tree(NamedTuple):
    """Policies with a softmax for each prefix, and all their responses: n instances, Y = K^L responses."""

    likelihood: Tensor
    """π(y), (n, Y)."""
    logp: Tensor
    """log π of each token, (n, Y, L)."""
    s2: Tensor
    """Σπ² of each token's softmax, (n, Y, L)."""
    score: Tensor
    """∇ log π of each token in all logits of the tree, (n, Y, L, D)."""
    reward: Tensor
    """Reward of each response, 0 or 1, (n, Y); at least one of each."""


def tree(instances: int, length: int, std: float = SPREAD) -> Tree:
    """Draw policies with logits N(0, std²) for each prefix, and a reward for each response."""
    tokens = torch.cartesian_prod(*[torch.arange(ARMS)] * length).reshape(-1, length)
    prefixes = [sum((tokens[:, j] * ARMS ** (t - 1 - j) for j in range(t)), 0 * tokens[:, 0]) for t in range(length)]
    tables = [
        random_logits(instances * ARMS**t, ARMS, std, f"prefixes {length} {t}").reshape(instances, -1, ARMS)
        for t in range(length)
    ]
    logp, s2, score = [], [], []
    for t, (prefix, table) in enumerate(zip(prefixes, tables, strict=True)):
        each = table.log_softmax(-1)[:, prefix]
        arm = torch.nn.functional.one_hot(tokens[:, t], ARMS).double()
        logp.append((each * arm).sum(-1))
        s2.append((2 * each).exp().sum(-1))
        place = torch.nn.functional.one_hot(prefix, ARMS**t).double()
        score.append((place[:, :, None] * (arm - each.exp())[:, :, None, :]).flatten(-2))
    zeros = [torch.zeros_like(own) for own in score]
    vectors = [torch.cat([*zeros[:t], own, *zeros[t + 1 :]], -1) for t, own in enumerate(score)]
    reward = (random_vector(instances, len(tokens), f"responses {length}") > 0).double()
    reward[:, 0], reward[:, -1] = 1, 0
    found = torch.stack(logp, -1)
    return Tree(found.sum(-1).exp(), found, torch.stack(s2, -1), torch.stack(vectors, -2), reward)


def variance(drawn: Tree, baseline: Tensor) -> Tensor:
    """Return the variance of the gradient Σ_t (R − B_t)·∇ log π_t of a response, (n,); baseline (n, L)."""
    gradient = ((drawn.reward[..., None] - baseline[:, None])[..., None] * drawn.score).sum(-2)
    weight = drawn.likelihood[..., None]
    return (weight * gradient**2).sum((-2, -1)) - ((weight * gradient).sum(-2) ** 2).sum(-1)


def least(drawn: Tree) -> Tensor:
    """Return the baselines B_t of least variance among all constants, (n, L): the root of its slope in them."""
    weight, whole = drawn.likelihood, drawn.score.sum(-2)
    products = torch.einsum("iy,iytd,iyjd->itj", weight, drawn.score, drawn.score)
    slope = torch.einsum("iy,iytd,iyd->it", weight * drawn.reward, drawn.score, whole)
    return torch.linalg.solve(products, slope)


def own_energy(drawn: Tree) -> Tensor:
    """Return ‖∇ log π_t‖² = 1 − 2π + Σπ² of each token, (n, Y, L)."""
    return 1 - 2 * drawn.logp.exp() + drawn.s2


def energy(drawn: Tree) -> Tensor:
    """Return W_t = Σ_{j ≤ t} ‖∇ log π_j‖², (n, Y, L)."""
    return own_energy(drawn).cumsum(-1)


def weighted(drawn: Tree, weight: Tensor) -> Tensor:
    """Return E[R·W_t]/E[W_t], (n, L); weight (n, Y, L)."""
    mass = drawn.likelihood[..., None] * weight
    return (mass * drawn.reward[..., None]).sum(1) / mass.sum(1)


def mean_reward(drawn: Tree) -> Tensor:
    """Return E[R] at each place, (n, L)."""
    return weighted(drawn, torch.ones_like(drawn.logp))


def excess(drawn: Tree, baseline: Tensor) -> Tensor:
    """Return the variance above the least one, relative to it, (n,)."""
    return variance(drawn, baseline) / variance(drawn, least(drawn)) - 1


def drawn(effort: Effort, length: int) -> Tree:
    return tree(min(effort.instances, 100), length)


ONE_TOKEN = "a response is one token"


@claim(
    "optimal-token-baseline",
    paper=PAPER,
    source="arXiv 2602.07078; the formula as verl's documentation has it",
    words="at place t the baseline E[R·W_t]/E[W_t] is optimal, with W_t the squared norm of the tokens' gradients "
    "summed up to t",
    statement=(
        r"\operatorname{Var} \textstyle\sum_t (R - B_t) \nabla \log \pi_t \ \text{is least at}\ "
        r"B_t = \mathbb{E}[R\, W_t] / \mathbb{E}[W_t],",
        r"W_t = \textstyle\sum_{j \le t} \lVert \nabla \log \pi_j \rVert^2",
    ),
    assumption="a softmax for each prefix, rewards of 0 and 1 at the end; responses of 1 to 4 tokens, all enumerated",
    threshold="a variance within 1e-9 of the least of all baselines by place, in every instance",
    null="the mean reward",
    expected=holds_if(ONE_TOKEN),
    mutations=(Mutation("W_t were of the token alone", Swap(__name__, "energy", always(own_energy))),),
    live=Live(
        "token-baseline",
        values={"length": 1},
        turned={"length": 3},
        conditions=(equals("weight", "summed up to the token"), within("length", high=1, stated=False)),
    ),
)
def optimal_token_baseline(effort: Effort) -> Finding:
    """Gradients of tokens after different prefixes are orthogonal, so their variances add, and each is least at
    E[R·‖∇ log π_t‖²]/E[‖∇ log π_t‖²]: of the token alone. The sum up to t is optimal where one number serves the
    whole response, at its end. In between it beats the mean reward in every instance."""
    found = {length: drawn(effort, length) for length in LENGTHS}
    stated = {length: excess(each, weighted(each, energy(each))) for length, each in found.items()}
    mean = {length: excess(each, mean_reward(each)) for length, each in found.items()}
    longer, plain = (torch.stack([each[length] for length in LENGTHS[1:]]) for each in (stated, mean))
    one, most = float(stated[1].max()), float(longer.max())
    better = float((longer < plain).double().mean())
    return Finding(
        f"variance above the least: {one:.0e} with one token, {float(longer.median()):.1%} in the median of longer "
        f"responses and {most:.0%} at most; below the mean reward's in {better:.0%} of the instances",
        {
            **{f"L = {length}, median": float(values.median()) for length, values in stated.items()},
            "longer, most": most,
            "share better than the mean reward": better,
        },
        judge(max(one, most) < ROUNDING, ONE_TOKEN, one < ROUNDING),
        null=f"{float(plain.median()):.1%} in the median, {float(plain.max()):.0%} at most",
    )


@picture("optimal-token-baseline", caption="Variance above the least one: median and 95% of the policies.")
def draw_excess(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    named = {
        "mean reward": mean_reward,
        "weights summed up to the token": lambda each: weighted(each, energy(each)),
        "weights of the token alone": lambda each: weighted(each, own_energy(each)),
    }
    for k, (name, baseline) in enumerate(named.items()):
        values = torch.stack([excess(each, baseline(each)) for each in (drawn(effort, length) for length in LENGTHS)])
        low, middle, high = (values.quantile(q, -1) for q in (0.025, 0.5, 0.975))
        at = torch.tensor(LENGTHS) + 0.12 * (k - 1)
        axes.errorbar(at, middle, torch.stack([middle - low, high - middle]), fmt="o", capsize=3, label=name)
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set(xlabel="tokens of a response", ylabel="variance above the least, relative", xticks=LENGTHS)
    axes.set_ylim(-0.002, 1000)
    axes.legend()


def groups_of(drawn: Tree, size: int = GROUP) -> tuple[Tensor, Tensor]:
    """Return all groups of `size` responses, int64 (G, size), and the probability of each, (n, G)."""
    members = torch.cartesian_prod(*[torch.arange(drawn.reward.shape[-1])] * size)
    return members, drawn.likelihood[:, members].prod(-1)


def with_itself(drawn: Tree, members: Tensor) -> Tensor:
    """Return the library's `optimal_token` of each token of each group, (n, G, size, L)."""
    groups, size, length = *members.shape, drawn.logp.shape[-1]
    advantage = get_advantage("optimal_token")(
        drawn.reward[:, members].flatten(1),
        torch.arange(groups).repeat_interleave(size),
        logp=drawn.logp[:, members].flatten(1),
        s2=drawn.s2[:, members].flatten(1),
        response=torch.arange(groups * size).repeat_interleave(length),
    )
    return advantage.reshape(-1, groups, size, length)


def of_the_others(drawn: Tree, members: Tensor) -> Tensor:
    """Return the same with each response left out of its own baseline, (n, G, size, L)."""
    weight, reward = energy(drawn)[:, members], drawn.reward[:, members][..., None]
    others, mass = (x.sum(2, keepdim=True) - x for x in (weight * reward, weight))
    return reward - others / mass


def from_the_mean(drawn: Tree, members: Tensor) -> Tensor:
    """Return R minus the group's mean reward, (n, G, size, L)."""
    reward = drawn.reward[:, members][..., None]
    return (reward - reward.mean(2, keepdim=True)).expand(-1, -1, -1, drawn.logp.shape[-1])


class Step(NamedTuple):
    """Mean gradient of a group beside the true one, ∇E[R]; n instances."""

    expected: Tensor
    """Expected step, in the scale in which its part along ∇E[R] is ∇E[R], (n, D)."""
    true: Tensor
    """∇E[R], (n, D)."""
    aside: Tensor
    """Share of the squared expected step that is not along ∇E[R], (n,)."""
    noise: Tensor
    """E‖step − ∇E[R]‖²/‖∇E[R]‖² in that scale, (n,)."""


def step(drawn: Tree, advantage: Tensor, members: Tensor, chance: Tensor) -> Step:
    """Return the step of a group, exactly, from all groups; advantage (n, G, size, L)."""
    steps = torch.einsum("igmt,igmtd->igd", advantage, drawn.score[:, members]) / members.shape[-1]
    true = torch.einsum("iy,iytd->id", drawn.likelihood * drawn.reward, drawn.score)
    expected, power = (chance[..., None] * steps).sum(1), (true**2).sum(-1)
    along = ((expected * true).sum(-1) / power)[:, None]
    aside = ((expected - along * true) ** 2).sum(-1) / (expected**2).sum(-1)
    error = ((steps / along[:, None] - true[:, None]) ** 2).sum(-1)
    return Step(expected / along, true, aside, (chance * error).sum(-1) / power)


LEFT_OUT = "a response is left out of its own baseline"


@claim(
    "optimal-token-group",
    paper=PAPER,
    source="arXiv 2602.07078; the group's formula as verl has it",
    words="the baseline is the weighted mean reward of the group, and a baseline does not turn the expected gradient",
    statement=(
        r"\mathbb{E}\Big[\tfrac{1}{n}\textstyle\sum_{i,t} (R_i - B_t)\, \nabla \log \pi_{i,t}\Big] \propto \nabla\, "
        r"\mathbb{E}[R],",
        r"B_t = \textstyle\sum_i R_i W_{i,t} \big/ \sum_i W_{i,t}",
    ),
    assumption="a softmax for each prefix, rewards of 0 and 1, groups of 4 responses of two tokens, all enumerated",
    threshold="at most 1e-9 of the squared expected step aside of the gradient, in every instance",
    null="R minus the group's mean, which shortens the step by 1/n and does not turn it",
    expected=holds_if(LEFT_OUT),
    mutations=(
        Mutation("a response were left out of its own baseline", Swap(__name__, "with_itself", always(of_the_others))),
    ),
    live=Live(
        "token-group", values={"own": False}, turned={"own": True}, conditions=(equals("own", False, stated=False),)
    ),
)
def optimal_token_group(effort: Effort) -> Finding:
    """A response with a large gradient pulls its own baseline towards its own reward, so it counts less, whatever the
    true gradient is. Left out, nothing is turned, and the step is noisier than with the plain mean in most instances:
    so few responses do not tell the weights' mean."""
    shown = tree(min(effort.instances, GROUPS), 2)
    members, chance = groups_of(shown)
    ours, others, mean = (
        step(shown, each(shown, members), members, chance) for each in (with_itself, of_the_others, from_the_mean)
    )
    told = {"the response itself in it": ours.noise / mean.noise, "left out": others.noise / mean.noise}
    noise = ", ".join(f"{name} {float(ratio.median()):.2f}" for name, ratio in told.items())
    aside, without = float(ours.aside.max()), float(others.aside.max())
    return Finding(
        f"aside of the gradient: {float(ours.aside.median()):.1%} in the median and {aside:.0%} at most, {without:.0e} "
        f"without the response itself; noise over that with the plain mean, median: {noise}",
        {
            "aside, median": float(ours.aside.median()),
            "aside, most": aside,
            "aside without itself, most": without,
            **{f"noise, {name}, median": float(ratio.median()) for name, ratio in told.items()},
            **{
                f"noise, {name}, share above the mean's": float((ratio > 1).double().mean())
                for name, ratio in told.items()
            },
        },
        judge(aside < ROUNDING, LEFT_OUT, without < ROUNDING),
        null=f"{float(mean.aside.max()):.0e} aside",
    )
