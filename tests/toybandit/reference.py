"""The simulator written out in loops over runs, prompts, responses and tokens, from the definitions. Slow and plain.

    rollout (reference_rollout) ► tokens ► plan of the controller ► gradient ► step

Only the plan is the library's own; what it reads, and what becomes of it, is computed here.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from reference_rollout import Row, Rows, State, Token, bandit, enumerated, flipped, sampled, shares

from entrostat import Chain, LocalReduce, Plan, StepStats, Tokens, make
from entrostat.settings.schedules import schedule
from entrostat.surrogates.base import ClippedRatio
from toybandit import Config
from toybandit.environments import Environment

# The update ---------------------------------------------------------------------------------------------------------


def loss_of(plan: Plan, surrogate: Any, logp: torch.Tensor, entropy: torch.Tensor, tail: Any) -> torch.Tensor:
    """Return the loss of each token, (runs, N): clipped ratios, bonuses and penalties from their formulas.

    Other surrogates are the library's own.
    """
    if not isinstance(surrogate, ClippedRatio):
        return plan.token_loss(logp, entropy, truncated_entropy=tail)
    assert plan.old_logp is not None
    gain, ratio = plan.weight * plan.advantage, (logp - plan.old_logp).exp()
    loss = torch.maximum(-gain * ratio, -gain * torch.minimum(torch.maximum(ratio, plan.clip_low), plan.clip_high))
    if plan.dual_clip is not None:
        loss = torch.where(gain < 0, torch.minimum(loss, -gain * plan.dual_clip), loss)
    if plan.entropy_coef is not None:
        loss = loss - plan.entropy_coef * entropy
    if plan.truncated_coef is not None:
        loss = loss - plan.truncated_coef * tail
    if plan.kl_coef is not None:
        gap = logp - plan.old_logp
        loss = loss + plan.kl_coef * torch.where(gap.abs() > 1e-12, gap.abs(), 0.0)
    if plan.ref_coef is not None:
        assert plan.ref_logp is not None
        x = plan.ref_logp - logp
        loss = loss + plan.ref_coef * {"k1": -x, "k2": x**2 / 2, "k3": x.exp() - x - 1}[plan.ref_estimator]
    return plan.scale * loss


class Step:
    """Update rule of one run; the gradient is that of the mean loss of a state."""

    def __init__(self, rule: str, lr: float) -> None:
        self.rule, self.lr, self.calls = rule, lr, 0
        self.moments: dict[tuple[int, int], tuple[float, float]] = {}

    def __call__(self, gradient: Rows, states: list[State], heat: float) -> Rows:
        if self.rule == "npg":
            return [self.natural(g, state.p, heat) for g, state in zip(gradient, states, strict=True)]
        if self.rule == "adam":
            self.calls += 1
            return [[self.adam(row, arm, g) for arm, g in enumerate(line)] for row, line in enumerate(gradient)]
        return [[-self.lr * g for g in line] for line in gradient]

    def natural(self, gradient: Row, p: Row, heat: float) -> Row:
        """Solve F·x = g with Σx = 0, F = (diag(p) − p·pᵀ)/T²."""
        arms = len(p)
        fisher = [[((i == j) * p[i] - p[i] * p[j]) / heat**2 + 1 / arms for j in range(arms)] for i in range(arms)]
        return [-self.lr * float(x) for x in np.linalg.solve(fisher, gradient)]

    def adam(self, row: int, arm: int, g: float) -> float:
        m, v = self.moments.get((row, arm), (0.0, 0.0))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        self.moments[row, arm] = m, v
        return -self.lr * (m / (1 - 0.9**self.calls)) / (math.sqrt(v / (1 - 0.999**self.calls)) + 1e-8)


def kernel_of(environment: Environment) -> Rows:
    e = environment
    if e.kernel is not None:
        return [list(line) for line in e.kernel]
    return [[1.0 if i == j else e.coupling for j in range(e.rows)] for i in range(e.rows)]


class Expected(LocalReduce):
    """Counts of enumerated outcomes: each by its frequency."""

    def __init__(self, frequency: torch.Tensor) -> None:
        self.frequency = frequency

    def count(self, mask: torch.Tensor) -> torch.Tensor:
        return (mask * self.frequency).sum(-1)


# The whole simulation -----------------------------------------------------------------------------------------------


@dataclass
class Found:
    """Contents of a trajectory, and the tokens of every update."""

    entropy: np.ndarray
    reward: np.ndarray
    predicted: np.ndarray
    logits: np.ndarray
    probabilities: np.ndarray
    success: np.ndarray
    metrics: dict[str, np.ndarray]
    tokens: list[Tokens] = field(default_factory=list)


class Loops:
    """All runs of a configuration. `needs`: further token fields to compute."""

    def __init__(self, config: Config, seeds: list[int], needs: frozenset[str] = frozenset()) -> None:
        self.environment, self.seeds = config.environment(), seeds
        given = dict(config.controller_args) | ({} if config.target is None else {"target": config.target})
        self.controller: Chain = make(config.controller, preset=config.preset, **given)
        self.needs = self.controller.needs | needs
        started = [bandit(self.environment, seed) for seed in seeds]
        self.z, self.success = [z for z, _ in started], [q for _, q in started]
        self.config, self.heat = config, [1.0] * len(seeds)
        self.started = self.z.copy()
        lr = self.environment.lr if isinstance(self.environment.lr, tuple) else [self.environment.lr] * len(seeds)
        self.lr = lr
        self.steps = [Step(self.environment.update, rate) for rate in lr]
        self.kernel = kernel_of(self.environment)
        self.history: dict[str, list[Any]] = {}
        self.seen: list[Tokens] = []
        self.before: list[list[float]] = [[0.0] for _ in seeds]

    def run(self) -> Found:
        e, planned = self.environment, {}
        for step in range(e.rollouts):
            self.set_temperature(step)
            old = self.states()
            self.note(reward=self.rewards(old), entropy=self.entropies(old))
            if e.label_noise:
                self.note(reward_seen=[flipped(reward, e.label_noise) for reward in self.rewards(old)])
            rollouts = [
                enumerated(e, states, success) if e.group is None else sampled(e, states, success, seed, step, before)
                for states, success, seed, before in zip(old, self.success, self.seeds, self.before, strict=True)
            ]
            entropy = torch.tensor(self.entropies(old), dtype=torch.float64)
            told = StepStats(entropy=entropy, step=step, total_steps=e.rollouts, delay=0, planned=planned)
            if self.controller.resets_reference(step):
                self.started = self.z.copy()
            self.controller.observe(told)
            self.note(**self.controller.metrics())
            planned, predicted = {}, [0.0] * len(self.seeds)
            for number in range(e.passes):
                info, change = self.update(old, rollouts, step * e.passes + number)
                planned = {name: value + planned.get(name, 0.0) for name, value in info.items()}
                predicted = [a + b for a, b in zip(predicted, change, strict=True)]
            self.note(predicted=predicted, **{name: value / e.passes for name, value in planned.items()})
        self.note(entropy=self.entropies(self.states()))
        return self.found()

    def set_temperature(self, step: int) -> None:
        """Set T of each run, and note the policy at 1 if T is not that of every rollout."""
        asked = self.controller.temperature
        if asked is None and self.config.temperature is not None:
            number = schedule(self.config.temperature).at(step, self.environment.rollouts)[0]
            asked = torch.tensor(number, dtype=torch.float64)
        if asked is not None:
            self.heat = torch.as_tensor(asked).expand(len(self.seeds)).tolist()
            cold = [[State(line) for line in z] for z in self.z]
            at_one = {"entropy/at_1": self.entropies(cold), "reward/at_1": self.rewards(cold)}
            self.note(temperature=self.heat, **at_one)

    def states(self, logits: list[Rows] | None = None) -> list[list[State]]:
        return [
            [State([z / heat for z in line]) for line in rows]
            for rows, heat in zip(logits or self.z, self.heat, strict=True)
        ]

    def entropies(self, states: list[list[State]]) -> Row:
        return [
            sum(share * state.entropy for share, state in zip(shares(self.environment, run), run, strict=True))
            for run in states
        ]

    def rewards(self, states: list[list[State]]) -> Row:
        found = []
        for run, success in zip(states, self.success, strict=True):
            share = shares(self.environment, run)
            expected = [
                sum(p * q for p, q in zip(s.p, line, strict=True)) for s, line in zip(run, success, strict=True)
            ]
            found.append(sum(a * b for a, b in zip(share, expected, strict=True)))
        return found

    def tokens(self, old: list[list[State]], now: list[list[State]], rollouts: list[list[Token]]) -> Tokens:
        """Return the mini-batch, (runs, N), with the fields that the controller needs."""
        support, proxy, reference = self.controller.support, self.controller.proxy, self.states(self.started)
        rules = {
            "old_logp": lambda run, t: old[run][t.row].logp[t.arm],
            "rollout_logp": lambda run, t: old[run][t.row].logp[t.arm],
            "ref_logp": lambda run, t: reference[run][t.row].logp[t.arm],
            "proxy_logp": lambda run, t: old[run][t.row].on(proxy, run)[t.arm],
            "old_entropy": lambda run, t: old[run][t.row].entropy,
            "entropy": lambda run, t: now[run][t.row].entropy,
            "s2": lambda run, t: now[run][t.row].s2,
            "s2l": lambda run, t: now[run][t.row].s2l,
            "s2ll": lambda run, t: now[run][t.row].s2ll,
            "reward": lambda run, t: t.reward,
            "truncated_entropy": lambda run, t: now[run][t.row].entropy_on(support, run),
        }
        always = {
            "logp": lambda run, t: now[run][t.row].logp[t.arm],
            "advantage": lambda run, t: t.advantage,
        }
        ids = {"group_id": "prompt", "seq_id": "response", "position": "position"}
        if self.environment.group is None:
            del ids["group_id"]
        wanted = always | {name: rule for name, rule in rules.items() if name in self.needs}
        fields: dict[str, Any] = {"old_logp": None}
        for name, rule in wanted.items():
            table = [[rule(run, token) for token in tokens] for run, tokens in enumerate(rollouts)]
            fields[name] = torch.tensor(table, dtype=torch.float64)
        for name, attribute in ids.items():
            if name in self.needs:
                fields[name] = torch.tensor([getattr(token, attribute) for token in rollouts[0]])
        if "turn_id" in self.needs:
            fields["turn_id"] = torch.zeros(len(rollouts[0]), dtype=torch.int64)
        return Tokens(**fields)

    def update(self, old: list[list[State]], rollouts: list[list[Token]], number: int) -> tuple[dict[str, Any], Row]:
        """Move the logits by one pass; return the plan's info and the predicted entropy changes of the runs."""
        now = self.states()
        tokens = self.tokens(old, now, rollouts)
        self.seen.append(tokens)
        frequency = torch.tensor([[token.frequency for token in run] for run in rollouts], dtype=torch.float64)
        reduce = Expected(frequency) if self.environment.group is None else LocalReduce()
        plan = self.controller.plan(tokens, reduce, seed=torch.tensor(self.seeds), step=number)
        leaf = torch.tensor(self.z, dtype=torch.float64, requires_grad=True)
        run = torch.arange(len(self.seeds)).unsqueeze(-1)
        row, arm = (torch.tensor([[getattr(t, name) for t in r] for r in rollouts]) for name in ("row", "arm"))
        logp = torch.log_softmax(leaf / torch.tensor(self.heat, dtype=torch.float64).reshape(-1, 1, 1), -1)
        entropy = -(logp.exp() * logp).sum(-1)
        chosen = logp[run, row, arm]
        chosen = tokens.get("logp") + (chosen - chosen.detach())  # the tokens' own value: a gap of 0 stays exactly 0
        loss = loss_of(plan, self.controller.surrogate, chosen, entropy[run, row], self.tail(logp, now, row))
        gradient = torch.autograd.grad((frequency * loss).sum(), leaf)[0] * self.environment.states
        changes = []
        for index, states in enumerate(now):
            changes.append(self.predicted(index, states, gradient[index]))
            delta = self.steps[index](gradient[index].tolist(), states, self.heat[index])
            self.z[index] = [
                [
                    z + sum(share * delta[other][arm] for other, share in enumerate(self.kernel[row]) if share)
                    for arm, z in enumerate(line)
                ]
                for row, line in enumerate(self.z[index])
            ]
        return plan.info, changes

    def tail(self, logp: torch.Tensor, now: list[list[State]], row: torch.Tensor) -> Any:
        """Return the entropy of each token's policy on the support, differentiable, (runs, N); None without a bonus."""
        if self.controller.support is None:
            return None
        support = self.controller.support
        inside = torch.tensor(
            [[[x > -math.inf for x in s.on(support, run)] for s in now[run]] for run in range(len(now))]
        )
        on = torch.log_softmax(logp.masked_fill(~inside, -math.inf), -1)
        entropy = -(on.exp() * on.masked_fill(~inside, 0.0)).sum(-1)
        return entropy[torch.arange(len(now)).unsqueeze(-1), row]

    def predicted(self, run: int, states: list[State], gradient: torch.Tensor) -> float:
        """Return the derivative of the mean entropy, with the states as often met as now, along the step of SGD."""
        total = 0.0
        for share, state, line in zip(shares(self.environment, states), states, gradient.tolist(), strict=True):
            slopes = [-p * (lp + state.entropy) / self.heat[run] for p, lp in zip(state.p, state.logp, strict=True)]
            total += share * sum(slope * -self.lr[run] * g for slope, g in zip(slopes, line, strict=True))
        return total

    def note(self, **values: Any) -> None:
        for name, value in values.items():
            number = torch.as_tensor(value, dtype=torch.float64)
            self.history.setdefault(name, []).append(number.expand(len(self.seeds)).numpy())

    def found(self) -> Found:
        arrays = {name: np.stack(values, -1) for name, values in self.history.items()}
        known = {name: arrays.pop(name) for name in ("entropy", "reward", "predicted")}
        probabilities = [[State(line).p for line in run] for run in self.z]
        rows = (np.array(x) for x in (self.z, probabilities, self.success))
        return Found(
            **known,
            **dict(zip(("logits", "probabilities", "success"), rows, strict=True)),
            metrics=arrays,
            tokens=self.seen,
        )


def in_loops(config: Config, seeds: list[int], needs: frozenset[str] = frozenset()) -> Found:
    """Return the trajectory of a configuration, computed in loops."""
    return Loops(config, seeds, needs).run()
