"""The simulator: rollouts of a tabular-softmax bandit under an entropy controller, all runs at once.

    rollout (arms, rewards, advantages) ► observe ► M × [ tokens ► plan ► ∂loss/∂(log π, H) ► logits ]

The loss is the mean over the S·G tokens, and a step is taken on the mean gradient of each state, S times that of the
loss. Python loops over rollouts and passes only.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from entrostat import Chain, LocalReduce, Plan, StepStats, entropy_change, get_advantage
from entrostat.diagnostics import DIAGNOSED
from entrostat.tokens import Tokens

from .config import Config
from .control import EnumeratedReduce, build_controller
from .environments import Environment
from .policy import (
    Policy,
    logit_gradient,
    per_token,
    softmax_policy,
    token_logp,
    token_moments,
    truncated,
    truncated_gradient,
)
from .problem import coupling_kernel, draw_problem
from .rollout import Rollout, enumerate_rollout, sample_rollout
from .threads import one_thread
from .token_metrics import TokenMetrics
from .trajectory import Trajectory
from .updates import make_update

OnRollout = Callable[[int, dict[str, float]], None]
"""Takes the number of a rollout and its numbers as means over runs, named as in the run log."""
FLOW_NEEDS = frozenset({"entropy", "s2", "s2l", "s2ll"})


def simulate(
    config: Config,
    seeds: Sequence[int] = (0,),
    *,
    predict: bool = False,
    diagnostics: bool = False,
    on_rollout: OnRollout | None = None,
) -> Trajectory:
    """Run `config` once for each seed, side by side.

    A run depends on its own seed and its own hyperparameters alone, and random numbers are keyed by what they are for,
    so that two controllers meet the same bandits, uniform numbers and luck.

    seeds: one run each. predict: also predict each rollout's entropy change from the flow of its tokens.
    diagnostics: also record the metrics of `entrostat.diagnostics`; only of samples, and a few times slower.
    on_rollout: called after each rollout with its number and the means over runs of everything that is recorded.
    Raises ValueError on unknown names, on a controller that cannot run in this environment, and without seeds.
    """
    if not len(seeds):
        raise ValueError("seeds must name at least one run")
    with torch.no_grad(), one_thread():
        return _Simulation(config, seeds, predict, diagnostics).run(on_rollout)


class _Simulation:
    """State of a simulation in progress."""

    def __init__(self, config: Config, seeds: Sequence[int], predict: bool, diagnostics: bool) -> None:
        self.config = config
        self.environment: Environment = config.environment()
        self.seeds = torch.tensor([int(seed) for seed in seeds], dtype=torch.int64)
        self.controller: Chain = build_controller(config, len(seeds))
        self.needs = self.controller.needs | (FLOW_NEEDS if predict else frozenset())
        self.predict = predict
        self.reduce = LocalReduce()
        if self.environment.enumerated:
            self.reduce = EnumeratedReduce(config.controller, config.env)
        else:
            self.advantage = get_advantage(self.environment.advantage or "")
        self.metrics: TokenMetrics | None = None
        if diagnostics:
            self.metrics = TokenMetrics(self.environment, self.reduce)
            self.needs |= DIAGNOSED
        dtype = getattr(torch, config.dtype)
        self.logits, self.success = draw_problem(self.environment, self.seeds, dtype)
        self.reference = softmax_policy(self.logits)
        self.kernel = coupling_kernel(self.environment, dtype)
        self.update = make_update(self.environment.update, self.environment.lr)
        samples = self.environment.group or 2 * self.environment.arms
        self.group_id = torch.arange(self.environment.states).repeat_interleave(samples)
        self.seq_id = torch.arange(self.group_id.numel())
        self.position = torch.zeros_like(self.seq_id)
        self.history: dict[str, list[Tensor]] = {}
        self.planned: dict[str, Tensor] = {}

    def run(self, on_rollout: OnRollout | None) -> Trajectory:
        total = self.environment.rollouts
        for step in range(total):
            policy = softmax_policy(self.logits)
            mean_entropy = policy.entropy.mean(-1)
            self.record({"entropy": mean_entropy, "reward": (policy.p * self.success).sum(-1).mean(-1)})
            if self.metrics is not None:
                self.record(self.metrics.rollout(mean_entropy))
            rollout = self.roll_out(policy, step)
            self.controller.observe(self.step_stats(mean_entropy, step))
            self.record(self.controller.metrics())
            self.learn(policy, rollout, step)
            if on_rollout is not None:
                on_rollout(step, {name: float(values[-1].mean()) for name, values in self.history.items()})
        return self.trajectory()

    def step_stats(self, entropy: Tensor, step: int) -> StepStats:
        return StepStats(entropy=entropy, step=step, total_steps=self.environment.rollouts, planned=self.planned)

    def roll_out(self, policy: Policy, step: int) -> Rollout:
        group = self.environment.group
        if group is None:
            return enumerate_rollout(policy, self.success)
        return sample_rollout(policy, self.success, group, self.advantage, self.seeds, step)

    def learn(self, policy: Policy, rollout: Rollout, step: int) -> None:
        """The passes over one rollout; moves the logits."""
        passes, fixed = self.environment.passes, self.fixed(policy, rollout)
        totals: dict[str, Tensor] = {}
        self.planned = {}
        for number in range(passes):
            if number:
                policy = softmax_policy(self.logits)
            tokens = self.tokens(policy, rollout, fixed)
            plan = self.controller.plan(tokens, self.reduce, seed=self.seeds, step=step * passes + number)
            assert tokens.logp is not None
            coefficients = plan.coefficients(tokens.logp, tokens.entropy)
            dlogp, dentropy = (self.in_state_units(rollout, c) for c in coefficients)
            assert dlogp is not None
            gradient = logit_gradient(policy, rollout.arm, dlogp, dentropy)
            tail = self.truncated_part(policy, rollout, plan)
            delta = self.update(gradient if tail is None else gradient + tail)
            self.logits = self.logits + (delta if self.kernel is None else self.kernel @ delta)
            for name, value in plan.info.items():
                self.planned[name] = self.planned.get(name, 0.0) + value
            if self.metrics is not None:
                self.metrics.update(tokens, plan)
            if self.predict:
                flow = self.flow(tokens, dlogp, dentropy)
                if tail is not None:  # ΔH = Σ_a ∂H/∂z_a·(−η·gradient_a), and ∂H/∂z = −p(log p + H)
                    slope = policy.p * (policy.logp + policy.entropy.unsqueeze(-1))
                    flow = flow + self.environment.lr * (slope * tail).sum((-1, -2)) / self.environment.states
                totals["entropy_change_predicted"] = totals.get("entropy_change_predicted", 0.0) + flow
        self.record(totals | {name: value / passes for name, value in self.planned.items()})
        if self.metrics is not None:
            self.record(self.metrics.step())

    def truncated_part(self, policy: Policy, rollout: Rollout, plan: Plan) -> Tensor | None:
        """What a bonus on the truncated entropy adds to the gradient in the logits, (runs, S, K)."""
        coefficient = self.in_state_units(rollout, plan.truncated_coefficient())
        if coefficient is None or self.controller.support is None:
            return None
        return truncated_gradient(policy, self.controller.support, rollout.arm, coefficient)

    def fixed(self, old: Policy, rollout: Rollout) -> dict[str, Tensor]:
        """What the controller needs of the rollout's tokens that stays the same in every pass."""
        arm = rollout.arm
        fields: dict[str, Callable[[], Tensor]] = {
            "old_logp": lambda: token_logp(old, arm),
            "old_entropy": lambda: per_token(old.entropy, arm),
            "ref_logp": lambda: token_logp(self.reference, arm),
            "reward": lambda: rollout.reward.flatten(1),
            "group_id": lambda: self.group_id,
            "seq_id": lambda: self.seq_id,
            "position": lambda: self.position,
        }
        if rollout.frequency is not None:
            del fields["group_id"]  # enumerated outcomes are no group of samples: who needs one is refused by name
        needed = {name: get() for name, get in fields.items() if name in self.needs}
        return {**needed, "advantage": rollout.advantage.flatten(1)}

    def tokens(self, policy: Policy, rollout: Rollout, fixed: dict[str, Tensor]) -> Tokens:
        """The mini-batch as the controller sees it, (runs, S·n) each; nothing that it does not need."""
        return Tokens(
            logp=token_logp(policy, rollout.arm),
            entropy=per_token(policy.entropy, rollout.arm) if "entropy" in self.needs else None,
            truncated_entropy=self.truncated_entropy(policy, rollout),
            **token_moments(policy, rollout.arm, self.needs),
            **{"old_logp": None, **fixed},  # type: ignore[arg-type]
        )

    def truncated_entropy(self, policy: Policy, rollout: Rollout) -> Tensor | None:
        if self.controller.support is None:
            return None
        return per_token(truncated(policy, self.controller.support)[1], rollout.arm)

    def in_state_units(self, rollout: Rollout, coefficient: Tensor | None) -> Tensor | None:
        """From the derivative of the mean over S·n tokens to that of the mean over a state's own outcomes."""
        if coefficient is None:
            return None
        scaled = coefficient * self.environment.states
        return scaled if rollout.frequency is None else scaled * rollout.frequency.flatten(1)

    def flow(self, tokens: Tokens, dlogp: Tensor, dentropy: Tensor | None) -> Tensor:
        """First-order change of the mean entropy by one SGD step without coupling, (runs,), nats."""
        entropy, s2, s2l = tokens.get("entropy"), tokens.get("s2"), tokens.get("s2l")
        change = entropy_change.exact(tokens.get("logp"), entropy, s2, s2l, -dlogp)
        if dentropy is not None:
            change = change - dentropy * (tokens.get("s2ll") + 2 * entropy * s2l + entropy**2 * s2)
        return self.environment.lr * change.sum(-1) / self.environment.states

    def record(self, values: dict[str, Tensor]) -> None:
        for name, value in values.items():
            self.history.setdefault(name, []).append(value.double().expand(self.seeds.shape))

    def trajectory(self) -> Trajectory:
        policy = softmax_policy(self.logits)
        self.record({"entropy": policy.entropy.mean(-1)})
        arrays = {name: torch.stack(values, -1).numpy() for name, values in self.history.items()}
        return Trajectory(
            config=self.config,
            seeds=tuple(self.seeds.tolist()),
            entropy=arrays.pop("entropy"),
            reward=arrays.pop("reward"),
            predicted=arrays.pop("entropy_change_predicted", None),
            probabilities=policy.p.double().numpy(),
            success=self.success.double().numpy(),
            metrics=arrays,
        )
