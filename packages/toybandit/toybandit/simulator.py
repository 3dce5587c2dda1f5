"""The simulator: rollouts of a tabular-softmax bandit under an entropy controller, all runs at once.

    rollout (arms, rewards, advantages) ► observe ► M × [ tokens ► plan ► ∂loss/∂(log π, H) ► weights ]

The weights are the logits themselves, or those of shared features (`toybandit.features`).

The loss is the mean over all tokens of the rollout. A step follows S times its gradient, the mean gradient of a state.
Only rollouts and passes are Python loops.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from entrostat import Chain, LocalReduce, Plan, StepStats
from entrostat.controller import numbers_at
from entrostat.diagnostics import DIAGNOSED
from entrostat.settings.schedules import schedule
from entrostat.tokens import Tokens

from .compiled import Compiled
from .config import Config
from .control import EnumeratedReduce, build_controller
from .environments import Environment
from .episodes import solved, token_mean
from .features import Features, in_weights, logits_of
from .luck import Luck
from .objective import Objective
from .policy import (
    Policy,
    logit_gradient,
    per_token,
    proxy_logp,
    token_logp,
    token_moments,
    truncated,
    truncated_gradient,
)
from .problem import coupling_kernel, draw_problem, with_label_noise
from .rollout import (
    MiniBatch,
    Respond,
    Rollout,
    enumerate_rollout,
    mini_batches,
    respond,
    sample_responses,
    sample_rollout,
)
from .token_metrics import TokenMetrics
from .trajectory import Array, HeldOut, Trajectory
from .updates import update_of
from .workspace import keep_freed_memory, one_thread

OnRollout = Callable[[int, dict[str, float]], None]
"""Callback for a rollout's index and its metrics as means over runs, named as in the run log."""
Watch = Callable[[Tokens, Plan], None]
WATCHED = frozenset(field.name for field in fields(Tokens)) - {"advantage", "truncated_entropy", "proxy_logp"}
"""Token fields for `watch` besides the advantage, without the fields that depend on a controller's support."""
EVALUATIONS = 20
"""Evaluations on held-out prompts in a run, besides the last."""
IN_CACHE = 1 << 17
"""Largest number of logits for which the data of a pass fits in the processor's cache."""


def simulate(
    config: Config,
    seeds: Sequence[int] = (0,),
    *,
    predict: bool = False,
    diagnostics: bool = False,
    keep_policies: bool = False,
    start: Array | None = None,
    on_rollout: OnRollout | None = None,
    watch: Watch | None = None,
    compile: bool = False,
) -> Trajectory:
    """Run `config` once for each seed, side by side.

    A run depends only on its own seed and hyperparameters. Random numbers are keyed by their purpose, so two
    controllers get the same bandits and the same uniform numbers.

    seeds: one run each. predict: also predict each rollout's entropy change from the flow of its tokens.
    diagnostics: also record the metrics of `entrostat.diagnostics`; sampled environments only, a few times slower.
    keep_policies: also keep the policy before each rollout and at the end.
    start: initial weights instead of the environment's, such as the `weights` of a trajectory: logits (runs, rows, K),
    or those of features.
    on_rollout: called after each rollout with its index and the means over runs of all recorded numbers.
    watch: called at every update with its tokens (runs, N), all fields that a controller may need, and their plan.
    compile: first compile a pass to machine code, which takes seconds and needs a C++ compiler; the numbers are equal
    except for rounding. With `predict`, `diagnostics` or `watch`, passes are not compiled. Controllers that cannot be
    compiled run uncompiled.
    Raises ValueError on unknown names, on a controller that cannot run in this environment, if seeds are missing or out
    of range, and on `compile` without a compiler or on a device other than the CPU.
    """
    if not len(seeds):
        raise ValueError("seeds must name at least one run")
    for seed in seeds:
        if not 0 <= seed < 2**63:
            raise ValueError(f"seeds must be between 0 and 2^63 - 1, not {seed}")
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' is not available here: use cpu")
    keep_freed_memory()
    place = nullcontext() if config.device == "cpu" else torch.device(config.device)
    with (torch.no_grad if compile else torch.inference_mode)(), one_thread(), place:
        simulation = _Simulation(config, seeds, predict, diagnostics, keep_policies, watch, start)
        if compile:
            simulation.compile()
        return simulation.run(on_rollout)


class Passed(NamedTuple):
    """Result of one pass."""

    tokens: Tokens
    plan: Plan
    gradient: Tensor
    """Gradient of the loss in the logits of the mini-batch, (R, rows, K)."""
    weights: Tensor
    """Weights after the update: logits (R, rows, K), or those of features (R, W, K)."""


class _Simulation:
    """State of a simulation in progress."""

    def __init__(
        self,
        config: Config,
        seeds: Sequence[int],
        predict: bool,
        diagnostics: bool,
        keep_policies: bool,
        watch: Watch | None,
        start: Array | None,
    ) -> None:
        self.config = config
        self.environment: Environment = config.environment()
        self.seeds = torch.tensor([int(seed) for seed in seeds], dtype=torch.int64)
        self.controller: Chain = build_controller(config, len(seeds))
        if config.temperature is not None and self.controller.temperature is not None:
            raise ValueError(f"controller {config.controller!r} sets the sampling temperature: leave temperature out")
        self.needs = self.controller.needs
        self.predict = predict and self.environment.is_on_logits
        self.reduce = LocalReduce()
        self.metrics: TokenMetrics | None = None
        if diagnostics:
            self.metrics = TokenMetrics(self.environment, self.reduce)
            self.needs |= DIAGNOSED
        self.watch = watch
        if watch is not None:
            self.needs |= WATCHED
        dtype = getattr(torch, config.dtype)
        self.features: Features | None = None
        if self.environment.features is None:
            self.weights, self.success = draw_problem(self.environment, self.seeds, dtype)
            self.kernel = coupling_kernel(self.environment, dtype)
        else:
            self.features, self.kernel = Features(self.environment, self.seeds, dtype), None
            self.weights = self.features.weights
        if start is not None:
            self.weights = starting_weights(start, self.weights)
        self.reference = self.weights
        self.of_row: Tensor | None = None
        """Features of the present prompts' rows, (rows, W)."""
        self.lr = learning_rates(self.environment, len(seeds), dtype)
        self.update = update_of(self.environment, self.lr)
        responses, length = self.environment.group or 2 * self.environment.arms, self.environment.length
        prompts = self.environment.states
        self.luck = Luck(self.seeds, prompts, responses)
        if not self.environment.enumerated:
            self.objective = Objective(self.environment, self.luck, len(seeds))
        self.group_id = torch.arange(prompts).repeat_interleave(responses * length)
        self.seq_id = torch.arange(prompts * responses).repeat_interleave(length)
        self.position = torch.arange(length).repeat(prompts * responses)
        self.history: dict[str, list[Tensor]] = {}
        self.policies: list[Tensor] | None = [] if keep_policies else None
        self.evaluations: list[tuple[int, Tensor, Tensor]] = []
        self.planned: dict[str, Tensor] = {}
        self.predicted: Tensor | None = None
        self.fast: Compiled | None = None
        self.respond: Respond = respond
        self.temperature: Tensor | None = None
        """Sampling temperature of the present rollout, (R or 1, 1, 1); None for 1."""

    def run(self, on_rollout: OnRollout | None) -> Trajectory:
        for step in range(self.environment.rollouts):
            self.temperature = self.temperature_at(step)
            self.face(step)
            policy = self.policy_of(self.weights, self.of_row)
            mean_entropy = token_mean(policy.entropy, policy, self.environment)
            reward = self.reward_of(policy)
            self.record({"entropy": mean_entropy, "reward": reward})
            if self.temperature is not None:
                self.record({"temperature": self.temperature.flatten(), **self.at_one()})
            if self.environment.label_noise > 0:
                self.record({"reward_seen": with_label_noise(reward, self.environment.label_noise)})
            if self.policies is not None:
                itself = policy if self.temperature is None else self.policy_at_one()
                self.policies.append(itself.p.double().cpu())
            if self.metrics is not None:
                self.record(self.metrics.rollout(mean_entropy))
            rollout = self.roll_out(policy, step)
            self.reset_reference(step)
            self.controller.observe(self.step_stats(mean_entropy, step))
            self.record(self.controller.metrics())
            self.learn(policy, rollout, step)
            if on_rollout is not None:
                on_rollout(step, {name: float(values[-1].mean()) for name, values in self.history.items()})
        return self.trajectory()

    def temperature_at(self, step: int) -> Tensor | None:
        """Return the sampling temperature of a rollout, that of the controller or of the configuration."""
        set_here = self.controller.temperature
        if set_here is None and self.config.temperature is not None:
            set_here = numbers_at(schedule(self.config.temperature), step, self.environment.rollouts)
        return None if set_here is None else set_here.to(self.weights).reshape(-1, 1, 1)

    def face(self, step: int) -> None:
        """Turn to the prompts of a rollout, and evaluate the policy on those held out when it is time."""
        if self.features is None:
            return
        rows = self.features.turn(step)
        if self.of_row is None or self.environment.prompts > self.environment.states:
            self.of_row, self.success = self.features.of_row[rows], self.features.success(rows)
        rollouts = self.environment.rollouts
        if self.environment.held_out and (step == rollouts or step % max(rollouts // EVALUATIONS, 1) == 0):
            unseen = self.features.unseen
            policy = Policy(logits_of(self.weights, self.features.of_row[unseen]))
            entropy = token_mean(policy.entropy, policy, self.environment)
            self.evaluations.append((step, entropy, self.features.solved(policy, unseen)))

    def policy_of(self, weights: Tensor, of_row: Tensor | None, rows: slice = slice(None)) -> Policy:
        """Return the policy on rows with these features, or on these rows of a table, at the rollout's temperature."""
        return Policy(logits_of(weights, of_row, rows), self.temperature)

    def policy_at_one(self) -> Policy:
        """Return the policy itself, whatever temperature it is sampled at."""
        return Policy(logits_of(self.weights, self.of_row))

    def reward_of(self, policy: Policy) -> Tensor:
        """Return the expected reward of a response, (R,), without label noise."""
        if self.environment.joint:
            return solved(policy.p, self.success, self.environment).mean(-1)
        return token_mean((policy.p * self.success).sum(-1), policy, self.environment)

    def at_one(self) -> dict[str, Tensor]:
        """Return entropy and reward of the policy itself."""
        policy = self.policy_at_one()
        entropy = token_mean(policy.entropy, policy, self.environment)
        return {"entropy/at_1": entropy, "reward/at_1": self.reward_of(policy)}

    def reset_reference(self, step: int) -> None:
        """Make the present policy the reference of the runs whose controller asks for it before this rollout."""
        due = self.controller.resets_reference(step)
        if bool(due.any()):
            self.reference = torch.where(due.reshape(-1, 1, 1), self.weights, self.reference)

    def step_stats(self, entropy: Tensor, step: int) -> StepStats:
        total = self.environment.rollouts
        return StepStats(entropy=entropy, step=step, total_steps=total, delay=0, planned=self.planned)

    def roll_out(self, policy: Policy, step: int) -> Rollout:
        environment = self.environment
        if environment.group is None:
            return enumerate_rollout(policy, with_label_noise(self.success, environment.label_noise))
        if environment.length > 1:
            sampled = sample_responses(policy, self.success, environment, self.objective.of_rewards, self.luck, step)
        else:
            noise, advantage = environment.label_noise, self.objective.of_rewards
            sampled = sample_rollout(policy, self.success, advantage, self.luck, step, self.respond, noise)
        return self.objective.applied(sampled, policy, self.success, step)

    def compile(self) -> None:
        """Compile passes and sampling if possible. Raise ValueError without a compiler or on a device but the CPU."""
        if self.config.device != "cpu":
            raise ValueError("compile works on device cpu only: leave it off")
        if not self.predict and self.metrics is None and self.watch is None:
            self.fast = Compiled(moved, f"controller {self.config.controller!r}")
        self.respond = Compiled(respond, f"advantage {self.environment.advantage!r}")

    def learn(self, policy: Policy, rollout: Rollout, step: int) -> None:
        """Run the passes over one rollout and update the weights."""
        parts = mini_batches(
            rollout, self.fixed(policy, rollout), self.of_row, self.environment.rows, self.environment.mini_batches
        )
        updates = self.environment.updates
        self.planned, self.predicted = {}, None
        cached = self.environment.length == 1 and self.weights.numel() <= IN_CACHE
        if self.fast is not None and self.features is None and cached:
            self.weights = self.weights.mT.contiguous().mT  # arm-major in memory: compiled sums over arms are faster
        for number in range(updates):
            part, update = parts[number % len(parts)], step * updates + number
            if self.fast is not None:
                self.weights, info = self.fast(self, self.weights, part, torch.tensor(update))
            else:
                here = policy if number == 0 and len(parts) == 1 else self.policy_of(self.weights, *part[2:])
                self.weights, info = self.looked_at(here, part, update)
            for name, value in info.items():
                self.planned[name] = self.planned.get(name, 0.0) + value
        self.weights = self.weights.contiguous()
        self.record({name: value / updates for name, value in self.planned.items()})
        if self.predicted is not None:
            self.record({"entropy_change_predicted": self.predicted})
        if self.metrics is not None:
            self.record(self.metrics.step())

    def looked_at(self, policy: Policy, part: MiniBatch, number: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the new weights and the plan's info after a pass, and record what the caller of `simulate` wanted."""
        passed = self.take_pass(self.weights, policy, part, number)
        if self.watch is not None:
            self.watch(passed.tokens, passed.plan)
        if self.metrics is not None:
            self.metrics.update(passed.tokens, passed.plan)
        if self.predict:
            change = self.predicted_change(policy, passed.gradient)
            self.predicted = change if self.predicted is None else self.predicted + change
        return passed.weights, passed.plan.info

    def take_pass(self, weights: Tensor, policy: Policy, part: MiniBatch, number: int | Tensor) -> Passed:
        """Run one pass over a mini-batch; number: updates of the run before this one."""
        rollout = part.rollout
        tokens = self.tokens(policy, rollout, part.fixed)
        reduce = self.reduce
        if rollout.frequency is not None:
            reduce = EnumeratedReduce(self.config.controller, self.config.env, rollout.frequency.flatten(1))
        plan = self.controller.plan(tokens, reduce, seed=self.seeds, step=number)
        dlogp, dentropy = plan.coefficients(tokens.get("logp"), tokens.entropy)
        if rollout.frequency is not None:
            frequency = rollout.frequency.flatten(1)
            dlogp, dentropy = dlogp * frequency, None if dentropy is None else dentropy * frequency
        gradient = logit_gradient(policy, rollout.arm, dlogp, dentropy, rollout.node)
        tail = self.truncated_part(policy, rollout, plan)
        if tail is not None:
            gradient = gradient + tail
        delta = self.update(in_weights(gradient, part.of_row, part.rows, weights.shape[1]), policy)
        return Passed(tokens, plan, gradient, weights + (delta if self.kernel is None else self.kernel @ delta))

    def truncated_part(self, policy: Policy, rollout: Rollout, plan: Plan) -> Tensor | None:
        """Return the gradient in the logits of a bonus on the truncated entropy, (runs, S, K); None without a bonus."""
        coefficient = plan.truncated_coefficient()
        if coefficient is None or self.controller.support is None:
            return None
        if rollout.frequency is not None:
            coefficient = coefficient * rollout.frequency.flatten(1)
        return truncated_gradient(policy, self.controller.support, rollout.arm, coefficient, rollout.node)

    def fixed(self, old: Policy, rollout: Rollout) -> dict[str, Tensor]:
        """Return the token fields that the controller needs and that stay the same in every pass."""
        arm = rollout.arm
        fields: dict[str, Callable[[], Tensor]] = {
            "old_logp": lambda: token_logp(old, arm),
            "rollout_logp": lambda: token_logp(old, arm),
            "old_entropy": lambda: per_token(old.entropy, arm, rollout.node),
            "ref_logp": lambda: token_logp(self.policy_of(self.reference, self.of_row), arm),
            "proxy_logp": lambda: proxy_logp(old, self.controller.proxy, arm),
            "reward": lambda: rollout.reward.flatten(1),
            "group_id": lambda: self.group_id,
            "seq_id": lambda: self.seq_id,
            "position": lambda: self.position,
            "turn_id": lambda: torch.zeros_like(self.position),
        }
        if rollout.frequency is not None:
            del fields["group_id"]  # enumerated outcomes are no sampled group: a rule that needs one is refused
        needed = {name: get() for name, get in fields.items() if name in self.needs}
        return {**needed, "advantage": rollout.advantage.flatten(1)}

    def tokens(self, policy: Policy, rollout: Rollout, fixed: dict[str, Tensor]) -> Tokens:
        """Return the mini-batch for the controller, (runs, S·n) each, with the fields that it needs and no others."""
        return Tokens(
            logp=token_logp(policy, rollout.arm),
            entropy=per_token(policy.entropy, rollout.arm, rollout.node) if "entropy" in self.needs else None,
            truncated_entropy=self.truncated_entropy(policy, rollout),
            **token_moments(policy, rollout.arm, self.needs, rollout.node),
            **{"old_logp": None, **fixed},  # type: ignore[arg-type]
        )

    def truncated_entropy(self, policy: Policy, rollout: Rollout) -> Tensor | None:
        if self.controller.support is None:
            return None
        return per_token(truncated(policy, self.controller.support)[1], rollout.arm, rollout.node)

    def predicted_change(self, policy: Policy, gradient: Tensor) -> Tensor:
        """Return the first-order change of the mean entropy by one SGD step without coupling, (runs,), nats.

        Σ_a ∂H/∂z_a·(−η·gradient_a) with ∂H/∂z = −p(log p + H): the sum of the flows of the tokens in the gradient.
        Covers changes of the entropies at a tree's nodes, not of how often the nodes are visited.
        """
        slope = policy.p * (policy.logp + policy.entropy.unsqueeze(-1))
        change = policy.in_logits((slope * gradient).sum(-1, keepdim=True)).squeeze(-1)
        parts = self.environment.mini_batches
        states = self.environment.states // parts
        return self.lr.flatten() * states / parts * token_mean(change, policy, self.environment)

    def on_held_out(self) -> HeldOut | None:
        if not self.evaluations:
            return None
        rollouts, entropy, right = zip(*self.evaluations, strict=True)
        return HeldOut(
            rollouts=np.array(rollouts),
            entropy=torch.stack(entropy, 1).double().cpu().numpy(),
            solved=torch.stack(right, 1).double().cpu().numpy(),
        )

    def kept(self, last: Policy) -> Array | None:
        if self.policies is None:
            return None
        return torch.stack([*self.policies, last.p.double().cpu()], 1).numpy()

    def record(self, values: dict[str, Tensor]) -> None:
        for name, value in values.items():
            self.history.setdefault(name, []).append(value.double().expand(self.seeds.shape))

    def trajectory(self) -> Trajectory:
        self.face(self.environment.rollouts)
        sampled = self.policy_of(self.weights, self.of_row)
        self.record({"entropy": token_mean(sampled.entropy, sampled, self.environment)})
        policy = self.policy_at_one()
        arrays = {name: torch.stack(values, -1).cpu().numpy() for name, values in self.history.items()}
        return Trajectory(
            config=self.config,
            seeds=tuple(self.seeds.tolist()),
            entropy=arrays.pop("entropy"),
            reward=arrays.pop("reward"),
            predicted=arrays.pop("entropy_change_predicted", None),
            probabilities=policy.p.double().cpu().numpy(),
            policies=self.kept(policy),
            logits=policy.logits.double().cpu().numpy(),
            weights=self.weights.double().cpu().numpy(),
            held_out=self.on_held_out(),
            success=self.success.double().cpu().numpy(),
            metrics=arrays,
        )


def moved(
    simulation: _Simulation, weights: Tensor, part: MiniBatch, number: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the new weights and the plan's info after a pass; a function that can be compiled."""
    policy = simulation.policy_of(weights, part.of_row, part.rows)
    passed = simulation.take_pass(weights, policy, part, number)
    return passed.weights, passed.plan.info


def learning_rates(environment: Environment, runs: int, dtype: torch.dtype) -> Tensor:
    """Return η of each run, (runs, 1, 1), or (1, 1, 1) if shared. Raise ValueError unless it has 1 or `runs` values."""
    rates = environment.lr if isinstance(environment.lr, tuple) else (environment.lr,)
    if len(rates) not in (1, runs):
        raise ValueError(f"lr has {len(rates)} values for {runs} runs")
    return torch.tensor(rates, dtype=dtype).reshape(-1, 1, 1)


def starting_weights(start: Array, like: Tensor) -> Tensor:
    """Return `start` as a tensor like the environment's weights. Raise ValueError on another shape, NaN or infinity."""
    if start.shape != tuple(like.shape):
        raise ValueError(
            f"start has shape {start.shape}; expected {tuple(like.shape)}, that of a trajectory's weights: "
            "(runs, states or features, arms)"
        )
    if not np.isfinite(start).all():
        raise ValueError("start has logits that are not finite: start from a run that has not diverged")
    return torch.as_tensor(start, device=like.device).to(like.dtype)
