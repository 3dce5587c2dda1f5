"""Bandits, draws, rewards and advantages of the simulator, written out in loops. Slow and plain.

    uniform numbers ► bandit ► arms, rewards, advantages

A policy is a list of rows of logits; the row of node n of prompt s is s·nodes + n.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist, fmean, stdev
from typing import Any
from zlib import crc32

import numpy as np
import torch

from toybandit.environments import Environment

Row = list[float]
Rows = list[Row]
BITS = (1 << 64) - 1


# Random numbers: SplitMix64 over keys (seed, purpose, …) ------------------------------------------------------------


def uniform(seed: int, purpose: str, *keys: int) -> float:
    state = 0
    for key in (seed, crc32(purpose.encode()), *keys):
        state = ((state ^ key) + 0x9E3779B97F4A7C15) & BITS
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & BITS
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & BITS
        state ^= state >> 31
    return ((state >> 12) + 0.5) * 2.0**-52


# The policy of a state ----------------------------------------------------------------------------------------------


class State:
    """Softmax of a row of logits, its entropy and its moments."""

    def __init__(self, z: Row) -> None:
        top = max(z)
        total = math.log(math.fsum(math.exp(x - top) for x in z)) + top
        self.logp = [x - total for x in z]
        self.p = [math.exp(x) for x in self.logp]
        self.entropy = -math.fsum(p * lp for p, lp in zip(self.p, self.logp, strict=True))
        self.s2, self.s2l, self.s2ll = (
            math.fsum(p**2 * lp**n for p, lp in zip(self.p, self.logp, strict=True)) for n in range(3)
        )

    def on(self, support: Any, run: int) -> Row:
        """Return log p^(1/T) on the support, renormalised, and −inf outside. The support may differ between runs."""
        top_k, top_p, min_p, temperature = (
            float(x[run] if isinstance(x, torch.Tensor) and x.ndim else x)
            for x in (support.top_k, support.top_p, support.min_p, support.temperature)
        )
        ranked = sorted(range(len(self.p)), key=lambda arm: (-self.p[arm], arm))
        kept, before = [], 0.0
        for rank, arm in enumerate(ranked):
            within_k, within_p = top_k <= 0 or rank < top_k, top_p >= 1 or before < top_p
            if within_k and within_p and self.p[arm] >= min_p * self.p[ranked[0]]:
                kept.append(arm)
            before += self.p[arm]
        power = {arm: math.exp(self.logp[arm] / temperature) for arm in kept}
        return [math.log(power[arm] / sum(power.values())) if arm in power else -math.inf for arm in range(len(self.p))]

    def entropy_on(self, support: Any, run: int) -> float:
        return -sum(math.exp(lp) * lp for lp in self.on(support, run) if lp > -math.inf)


def draw_from(p: Row, number: float) -> int:
    """Return the first arm whose cumulative probability reaches the number."""
    below = 0.0
    for arm, share in enumerate(p):
        below += share
        if number <= below:
            return arm
    return len(p) - 1


# The bandit of a run ------------------------------------------------------------------------------------------------


def bandit(environment: Environment, seed: int) -> tuple[Rows, Rows]:
    """Return the initial logits and the probability that an arm is rewarded."""
    e, logits, success = environment, [], []
    beta = None
    if e.success_beta is not None:
        beta = np.random.default_rng((crc32(b"success"), seed)).beta(*e.success_beta, (e.rows, e.arms))
    for row in range(e.rows):
        mean = [0.0] * e.arms if e.logits is None else e.logits[row if len(e.logits) > 1 else 0]
        normal = [NormalDist().inv_cdf(uniform(seed, "initial logits", row, arm)) for arm in range(e.arms)]
        z = [m + e.logit_std * x for m, x in zip(mean, normal, strict=True)]
        gumbel = [-math.log(-math.log(uniform(seed, "right arms", row, arm))) for arm in range(e.arms)]
        score = [e.right_tilt * lp + g for lp, g in zip(State(z).logp, gumbel, strict=True)]
        right = sorted(range(e.arms), key=lambda arm: -score[arm])[: e.right_arms]
        logits.append([x + e.right_logit * (arm in right) for arm, x in enumerate(z)])
        if e.success is not None:
            success.append(list(e.success[row if len(e.success) > 1 else 0]))
        elif beta is not None:
            success.append(beta[row].tolist())
        else:
            success.append([e.reward_right if arm in right else e.reward_wrong for arm in range(e.arms)])
    return logits, success


# Advantages of one run: a list of rewards for each prompt ----------------------------------------------------------


def advantages(name: str, rewards: Rows) -> Rows:
    word, _, given = name.partition(" ")
    if word == "reinforce_pp":
        centred = [[r - fmean(group) for r in group] for group in rewards]
        flat = [c for group in centred for c in group]
        variance = sum(c**2 for c in flat) / (len(flat) - 1)
        below = math.sqrt(variance) + 1e-6 if given == "over=responses" else math.sqrt(variance + 1e-8)
        return [[c / below for c in group] for group in centred]
    return [[advantage(word, given, group, member) for member in range(len(group))] for group in rewards]


def advantage(word: str, given: str, group: Row, member: int) -> float:
    reward, others = group[member], group[:member] + group[member + 1 :]
    if word == "grpo":
        return (reward - fmean(group)) / (stdev(group) + 1e-6)
    if word == "dr_grpo":
        return reward - fmean(group)
    if word == "rloo":
        return reward - fmean(others)
    if word == "qae":
        share = float(given.removeprefix("k=") or 0.4)
        quantile = next(x for x in sorted(group) if sum(y <= x for y in group) >= share * len(group) - 1e-9)
        return (reward - quantile) / (stdev(group) + 1e-6)
    if word == "max_rl":
        return (reward - fmean(group)) / fmean(group) if any(group) else 0.0
    if word == "pass_at_k":
        of = {key: value for key, _, value in (part.partition("=") for part in given.split())}
        return best_of(reward, others, int(of["k"]), of.get("variant", "unbiased"))
    values = {"w_reinforce": (-1.0, 0.1), "psr": (0.0, 1.0), "nsr": (-1.0, 0.0)}
    return values[word][int(reward)]


def best_of(reward: float, others: Row, k: int, variant: str) -> float:
    """Return pass_at_k, by all sets of k responses."""
    group = [reward, *others]
    if variant == "best":
        return max(reward - max(others), 0.0) / (stdev(group) + 1e-6)
    with_it = [max(reward, *rest) if rest else reward for rest in combinations(others, k - 1)]
    if variant == "unbiased":
        return k * fmean(best - max(rest) for best, rest in zip(with_it, combinations(others, k - 1), strict=True))
    mean = fmean(max(some) for some in combinations(group, k))
    return (fmean(with_it) - mean) / math.sqrt(mean * (1 - mean)) if 0 < mean < 1 else 0.0


# A rollout of a run: its tokens in the order of prompts, responses and positions ------------------------------------


@dataclass
class Token:
    """One token of a rollout."""

    row: int
    arm: int
    reward: float
    advantage: float
    prompt: int
    response: int
    position: int = 0
    frequency: float = 1.0


def nodes_of(environment: Environment) -> int:
    return sum(environment.branching**depth for depth in range(environment.length))


def told_advantages(e: Environment, paths: Any, rewards: Rows, told: "Told", before: Row) -> Rows:
    """Return advantages that look at more than rewards. before: running mean of earlier rewards, changed in place."""
    word, _, given = (e.advantage or "").partition(" ")
    if word == "gdpo":
        each = [[(r - fmean(group)) / (stdev(group) + 1e-6) for r in group] for group in rewards]
        flat = [x for group in each for x in group]
        variance = sum((x - fmean(flat)) ** 2 for x in flat) / (len(flat) - 1)
        return [[(x - fmean(flat)) / math.sqrt(variance + 1e-8) for x in group] for group in each]
    if word == "opo":
        return [[r - sum(e.length * x for x in group) / (e.length * len(group)) for r in group] for group in rewards]
    if word == "remax":
        return [[r - told.greedy(prompt) for r in group] for prompt, group in enumerate(rewards)]
    if word == "rae":
        decay, found = float(given.removeprefix("decay=") or 0.95), []
        for group in rewards:
            found.append([])
            for r in group:
                found[-1].append(r - before[0])
                before[0] = decay * before[0] + (1 - decay) * r
        return found
    assert word == "optimal_token"
    found = []
    for prompt, group in enumerate(rewards):
        state = told.states[prompt]
        weights = [max(1 - 2 * state.p[path[0][1]] + state.s2, 2.0**-52) for path in paths[prompt]]
        baseline = sum(w * r for w, r in zip(weights, group, strict=True)) / sum(weights)
        found.append([r - baseline for r in group])
    return found


@dataclass
class Told:
    """Inputs that an advantage can look up, where responses are one token."""

    states: list[State]
    success: Rows
    noise: float
    seed: int
    step: int

    def greedy(self, prompt: int) -> float:
        """Return the reward of the most likely arm, drawn once a rollout."""
        state = self.states[prompt]
        chance = self.success[prompt][max(range(len(state.p)), key=state.p.__getitem__)]
        return float(uniform(self.seed, "greedy", self.step, prompt, 0) < flipped(chance, self.noise))


OF_MORE = ("gdpo", "opo", "rae", "remax", "optimal_token")


def sampled(
    environment: Environment, states: list[State], success: Rows, seed: int, step: int, before: Row
) -> list[Token]:
    """before: running mean of earlier rewards of this run, changed in place."""
    e, nodes = environment, nodes_of(environment)
    paths: list[list[list[tuple[int, int]]]] = []
    rewards: Rows = []
    assert e.group is not None
    for prompt in range(e.states):
        paths.append([])
        rewards.append([])
        for response in range(e.group):
            path, first, within = [], 0, 0
            for depth in range(e.length):
                row = prompt * nodes + first + within
                purpose = "arm" if e.length == 1 else f"arm {depth}"
                arm = draw_from(states[row].p, uniform(seed, purpose, step, prompt, response))
                path.append((row, arm))
                first, within = first + e.branching**depth, within * e.branching + arm % e.branching
            chance = fmean(success[row][arm] for row, arm in path)
            paths[prompt].append(path)
            reward = float(uniform(seed, "reward", step, prompt, response) < chance)
            wrong = e.label_noise > 0 and uniform(seed, "label noise", step, prompt, response) < e.label_noise
            rewards[prompt].append(1 - reward if wrong else reward)
    if (e.advantage or "").partition(" ")[0] in OF_MORE:
        valued = told_advantages(e, paths, rewards, Told(states, success, e.label_noise, seed, step), before)
    else:
        valued = advantages(e.advantage or "", rewards)
    return [
        Token(row, arm, rewards[s][g], valued[s][g], s, s * e.group + g, position)
        for s in range(e.states)
        for g in range(e.group)
        for position, (row, arm) in enumerate(paths[s][g])
    ]


def enumerated(environment: Environment, states: list[State], success: Rows) -> list[Token]:
    """Return every arm with and without a reward; the frequency of an outcome is relative to the mean."""
    found = []
    for row, (state, right) in enumerate(zip(states, success, strict=True)):
        chances = [flipped(q, environment.label_noise) for q in right]
        expected = sum(p * q for p, q in zip(state.p, chances, strict=True))
        outcomes = [(1.0, arm, q) for arm, q in enumerate(chances)] + [
            (0.0, arm, 1 - q) for arm, q in enumerate(chances)
        ]
        for number, (reward, arm, chance) in enumerate(outcomes):
            frequency = len(outcomes) * state.p[arm] * chance
            response = row * len(outcomes) + number
            found.append(Token(row, arm, reward, reward - expected, row, response, frequency=frequency))
    return found


def flipped(chance: float, noise: float) -> float:
    """Return the chance of a reward that is flipped with probability `noise`."""
    return chance * (1 - noise) + (1 - chance) * noise


def shares(environment: Environment, states: list[State]) -> Row:
    """Return each row's expected share of all tokens."""
    e, nodes, found = environment, nodes_of(environment), [0.0] * len(states)
    for prompt in range(e.states):
        level, first = {0: 1.0}, 0
        for depth in range(e.length):
            following: dict[int, float] = {}
            for within, reached in level.items():
                row = prompt * nodes + first + within
                found[row] += reached / e.length / e.states
                for arm, p in enumerate(states[row].p):
                    child = within * e.branching + arm % e.branching
                    following[child] = following.get(child, 0.0) + reached * p
            level, first = following, first + e.branching**depth
    return found
