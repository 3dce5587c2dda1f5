"""The covariance of whole responses: The Entropy Mechanism, equation 7."""

from typing import NamedTuple

import torch
from torch import Tensor

from entrostat.entropy_change import lemma1

from .ensembles import random_logits, random_vector
from .live_case import Live, equals
from .mutations import Mutation, Swap
from .registry import Effort, Finding, claim, holds_if, judge
from .theorems import Theorem

PAPER = "Entropy Mechanism"
ARMS = 6
LENGTHS = (1, 2, 3, 4)
"""Numbers of tokens of a response, L; all ARMS^L responses are enumerated."""
EXACT = 1e-9
"""Largest error that counts as none."""


class Responses(NamedTuple):
    """All responses to a prompt, instance by instance: n instances, K arms, L tokens, K^L responses."""

    logp: Tensor
    """log π of every arm at every token, (n, L, K)."""
    tokens: Tensor
    """Arm of each token of each response, int64 (K^L, L)."""
    log_likelihood: Tensor
    """log π(y) of each response, (n, K^L)."""
    advantage: Tensor
    """Advantage of each response, with mean 0 under the policy, (n, K^L)."""


def responses(effort: Effort, length: int) -> Responses:
    """Draw policies with a table of logits for each token, N(0, 2²), and an advantage for every response."""
    n = min(effort.instances, 100)
    logp = torch.log_softmax(random_logits(n * length, ARMS, 2.0, f"responses {length}").reshape(n, length, ARMS), -1)
    tokens = torch.cartesian_prod(*[torch.arange(ARMS)] * length).reshape(-1, length)
    log_likelihood = torch.stack([logp[:, t, arm] for t, arm in enumerate(tokens.T)]).sum(0)
    advantage = random_vector(n, len(tokens), f"responses {length} advantage")
    mean = (log_likelihood.exp() * advantage).sum(-1, keepdim=True)
    return Responses(logp, tokens, log_likelihood, advantage - mean)


def fall(all_: Responses) -> Tensor:
    """Return −ΔH of a token's entropy, mean over the L tokens, per unit learning rate of the policy gradient: (n,).

    Its step on the logit of arm a at token t is Σ A(y)·π(y) over the responses with that arm there, as E[A] = 0.
    """
    flow = all_.log_likelihood.exp() * all_.advantage
    step = torch.zeros_like(all_.logp)
    for t, arm in enumerate(all_.tokens.T):
        step[:, t].index_add_(-1, arm, flow)
    return -lemma1(all_.logp, step).mean(-1)


def covariance(all_: Responses, power: int) -> Tensor:
    """Return Cov_y(log π(y)/L, π(y)^power·A(y)), (n,): power 1 is equation 7, power 0 has theorem 2's A alone."""
    likelihood = all_.log_likelihood.exp()
    x, y = all_.log_likelihood / all_.tokens.shape[-1], likelihood**power * all_.advantage
    centred = x - (likelihood * x).sum(-1, keepdim=True)
    return (likelihood * centred * y).sum(-1)


def unexplained(estimate: Tensor, truth: Tensor) -> float:
    """Return the squared error of the best multiple of `estimate`, relative to predicting 0: 0 if they are in
    proportion, 1 if they are unrelated."""
    return max(float(1 - (estimate @ truth) ** 2 / (estimate @ estimate) / (truth @ truth)), 0.0)


EQUATION_7 = Theorem(
    name="Entropy Mechanism, equation 7",
    test="test_entropy_mechanism_equation_7.py",
    derivation=(
        "Theorem 1 with a response y for an action: ΔH = −η·Cov_y(log π(y), π(y)·A(y)).",
        "With a table for each token, its step is p_a·E[A | a], without the other tokens' probabilities.",
        "π(y) is a product of L probabilities, so the covariance shrinks with L and differs by state.",
    ),
)


@claim(
    "em-equation-7",
    paper=PAPER,
    source="section 3.3, equation 7",
    assumption="expected policy gradient; the whole response is the action, its log-probability is divided by L",
    theorem=EQUATION_7,
    words="the fall of the entropy is in proportion to the covariance of log π(y) and π(y)·A(y) over whole responses y",
    statement=(
        r"-\Delta H \propto \operatorname{Cov}_{y \sim \pi}(\log \pi(y),\ \pi(y)\, A(y)),",
        r"y = (y_1, \dots, y_L)",
    ),
    setting="sampled responses of a language model, groups of one prompt, log π(y) averaged over tokens",
    threshold=f"a smaller unexplained share than the null and than 1 at every length; under the condition, none to "
    f"{EXACT:g}, since a proportion is exact there",
    null="theorem 2's covariance of log π(y) and A(y), without π(y)",
    expected=holds_if("responses have one token"),
    mutations=(
        Mutation("A had no factor π(y)", Swap(__name__, "covariance", lambda f: lambda y, power: f(y, 0))),
        Mutation(
            "the two covariances were exchanged", Swap(__name__, "covariance", lambda f: lambda y, n: f(y, 1 - n))
        ),
        Mutation("A had a factor π(y)²", Swap(__name__, "covariance", lambda f: lambda y, power: f(y, 2 * power))),
    ),
    live=Live("responses", turned={"length": 4}, conditions=(equals("length", 1, stated=False),)),
)
def equation_7(effort: Effort) -> Finding:
    """Theorem 1 takes one table of logits over whole responses. A language model has one for each token: the step on a
    token weighs its probability, not that of the response, which shrinks with every token. The covariance then falls
    ever shorter of the change, by another factor in every state; for longer responses, the one without π(y) is nearer
    to proportion."""
    numbers: dict[str, float] = {}
    for length in LENGTHS:
        found = responses(effort, length)
        truth, equation, plain = fall(found), covariance(found, 1), covariance(found, 0)
        numbers |= {
            f"unexplained, L = {length}": unexplained(equation, truth),
            f"unexplained without π(y), L = {length}": unexplained(plain, truth),
            f"median ratio, L = {length}": float((equation / truth).median()),
            f"wrong sign, L = {length}": float((equation * truth < 0).double().mean()),
        }

    def nearer(length: int, error: float) -> bool:
        ours, null = numbers[f"unexplained, L = {length}"], numbers[f"unexplained without π(y), L = {length}"]
        return ours < error and ours < null

    told = "; ".join(
        f"L = {length}: {numbers[f'unexplained, L = {length}']:.2f}, ratio {numbers[f'median ratio, L = {length}']:.2f}"
        for length in LENGTHS
    )
    without = ", ".join(f"{numbers[f'unexplained without π(y), L = {length}']:.2f}" for length in LENGTHS)
    return Finding(
        f"share of −ΔH unexplained by the best multiple, and median of covariance / −ΔH: {told}; wrong sign in "
        f"{numbers[f'wrong sign, L = {LENGTHS[-1]}']:.0%} of states at L = {LENGTHS[-1]}",
        numbers,
        judge(all(nearer(length, 1.0) for length in LENGTHS), "responses have one token", nearer(1, EXACT)),
        null=f"unexplained {without}",
    )
