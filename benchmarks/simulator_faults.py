"""Faults for the simulator, each in one place, that the quick tests must notice: `mutants --simulator`.

The first ten passed all claims when they were first tried: a claim judges a direction, and these keep it.
"""

from typing import NamedTuple

TOY, COMMON = "packages/toybandit/toybandit", "packages/common/entrostat"
LOGP_H = "policy.logp + policy.entropy.unsqueeze(-1)"


class Fault(NamedTuple):
    """Change of one place in one file."""

    name: str
    file: str
    was: str
    """Text that occurs in the file; its first occurrence is replaced."""
    becomes: str


def toy(name: str, file: str, was: str, becomes: str) -> Fault:
    return Fault(name, f"{TOY}/{file}.py", was, becomes)


def common(name: str, file: str, was: str, becomes: str) -> Fault:
    return Fault(name, f"{COMMON}/{file}.py", was, becomes)


DEVIATION = "groups.sum(centred**2) / (groups.size - 1).clamp(min=1)"
RLOO = "return centred * groups.spread(groups.size.to(centred) / (groups.size - 1).clamp(min=1))"
HEATED = "arm = inverse_cdf((p ** (1 / 1.1) / (p ** (1 / 1.1)).sum(-1, keepdim=True)).cumsum(-1), draw)"
UNCLAIMED = (
    common("advantage divided by the biased deviation", "advantages", DEVIATION, "groups.mean(centred**2)"),
    toy("arms drawn at temperature 1.1", "rollout", "arm = inverse_cdf(p.cumsum(-1), draw)", HEATED),
    common("importance ratio dropped", "surrogates/base", ".mul_(objective).mul_(", ".mul_(advantage).mul_("),
    toy("step times (S−1)/S", "updates", "self.factor = -lr * states", "self.factor = -lr * (states - 1)"),
    toy("rewards repeat every 8 rollouts", "rollout", 'luck("reward", step)', 'luck("reward", step % 8)'),
    toy("runs share their draws", "luck", "self.keys = seeds.", "self.keys = torch.zeros_like(seeds)."),
    toy("states share their draws", "luck", "torch.arange(prompts)", "torch.zeros(prompts, dtype=torch.int64)"),
    toy("bonus gradient without H", "policy", f"bonus * policy.p * ({LOGP_H})", "bonus * policy.p * policy.logp"),
    common("RLOO with the own reward in its baseline", "advantages", RLOO, "return centred"),
    common("anchor with k1 for k2", "controllers/thermostat", '"k2"', '"k1"'),
)
"""Faults that no claim noticed."""

FRESH = (
    '**{"old_logp": None, **fixed, **({"old_logp": token_logp(policy, rollout.arm)} if "old_logp" in fixed else {})},'
)
INVENTED = (
    toy(
        "reward drawn with the arm's number",
        "rollout",
        'luck("arm", step), luck("reward", step)',
        'luck("arm", step), luck("arm", step)',
    ),
    toy("response judged by its best arm", "rollout", "of_arm.mean(-1)", "of_arm.amax(-1)"),
    toy("response judged by its last arm", "rollout", "of_arm.mean(-1)", "of_arm[..., -1]"),
    toy(
        "expected reward over arms, not over the policy",
        "rollout",
        "(policy.p * success).sum(-1, keepdim=True)",
        "success.mean(-1, keepdim=True)",
    ),
    toy("failures as frequent as successes", "rollout", "policy.p * (1 - success)], -1)", "policy.p * success], -1)"),
    toy(
        "one group for all prompts",
        "rollout",
        "torch.arange(prompts, device=device).repeat_interleave(group)",
        "torch.arange(prompts, device=device).repeat(group) * 0",
    ),
    toy("reward always below 95% of its probability", "rollout", "(draw < probability)", "(draw < 0.95 * probability)"),
    toy("arms off by one in the search", "episodes", "arm + (half - 1)) < draw", "arm + half) < draw"),
    toy(
        "next state by the arm's quotient",
        "episodes",
        "within * branching + arm % branching",
        "within * branching + arm * branching // arms",
    ),
    toy(
        "visits by another child of an arm",
        "episodes",
        "torch.arange(environment.arms) % branching",
        "(torch.arange(environment.arms) + 1) % branching",
    ),
    toy(
        "mean over nodes, not over tokens",
        "episodes",
        "(visits(policy, environment) * x).sum(-1) / environment.states",
        "x.mean(-1)",
    ),
    toy("responses share draws in pairs", "luck", "torch.arange(group)", "torch.arange(group) // 2"),
    toy(
        "rollouts share draws in pairs",
        "luck",
        "uniform(seed, salt(purpose), rollouts, prompt",
        "uniform(seed, salt(purpose), rollouts // 2, prompt",
    ),
    toy(
        "a state draws what its neighbour drew a rollout before",
        "luck",
        "rollouts, prompt, sample)",
        "rollouts - prompt, sample)",
    ),
    toy("runs share the numbers of rewards", "luck", "uniform(seed, ", 'uniform(seed * (purpose != "reward"), '),
    toy(
        "right arms without tilt",
        "problem",
        "environment.right_tilt * torch.log_softmax(logits, -1) + gumbel",
        "gumbel",
    ),
    toy(
        "states share their initial logits",
        "problem",
        'salt("initial logits"), state, arm',
        'salt("initial logits"), 0 * state, arm',
    ),
    toy(
        "runs share their right arms",
        "problem",
        'uniform(seed, salt("right arms")',
        'uniform(0 * seed, salt("right arms")',
    ),
    toy("old log π renewed in each pass", "simulator", '**{"old_logp": None, **fixed},', FRESH),
    toy("reference follows the policy", "simulator", "token_logp(self.reference, arm)", "token_logp(old, arm)"),
    toy("last pass left out", "simulator", "for number in range(passes)", "for number in range(max(passes - 1, 1))"),
    toy(
        "controller told the entropy of a rollout ago",
        "simulator",
        "StepStats(entropy=entropy,",
        'StepStats(entropy=self.history["entropy"][max(step - 1, 0)],',
    ),
    toy(
        "planned changes averaged, not summed",
        "simulator",
        "planned=self.planned)",
        "planned={n: v / self.environment.passes for n, v in self.planned.items()})",
    ),
    toy("updates numbered anew in each rollout", "simulator", "update = step * passes + number", "update = number"),
    toy("kernel transposed", "simulator", "self.kernel @ delta", "self.kernel.mT @ delta"),
    toy("predicted change without H", "simulator", f"policy.p * ({LOGP_H})", "policy.p * policy.logp"),
    toy(
        "prompts interleaved in the groups' ids",
        "simulator",
        "torch.arange(prompts).repeat_interleave(responses * length)",
        "torch.arange(prompts).repeat(responses * length)",
    ),
    toy(
        "positions from the end",
        "simulator",
        "torch.arange(length).repeat(prompts * responses)",
        "torch.arange(length).flip(0).repeat(prompts * responses)",
    ),
    toy(
        "truncated entropy of the start",
        "simulator",
        "truncated(policy, self.controller.support)[1]",
        "truncated(self.reference, self.controller.support)[1]",
    ),
    toy("compiled passes all numbered 0", "simulator", "fixed, torch.tensor(update))", "fixed, torch.tensor(0))"),
    toy(
        "token sees the entropy of the next state",
        "policy",
        "x.unsqueeze(-1).expand(arm.shape)",
        "x.roll(1, -1).unsqueeze(-1).expand(arm.shape)",
    ),
    toy("softmax gradient 1% short of its normaliser", "policy", "value=-1)", "value=-0.99)"),
    toy("truncated bonus without its entropy", "policy", "p * (logp + entropy.unsqueeze(-1)), 0.0)", "p * logp, 0.0)"),
    toy(
        "Adam without the correction of its second moment",
        "updates",
        "self.second / (1 - self.beta_2**self.calls)",
        "self.second",
    ),
    toy(
        "natural gradient of the uniform policy",
        "updates",
        "gradient / policy.p.clamp(min=torch.finfo(policy.p.dtype).tiny)",
        "gradient * policy.p.shape[-1]",
    ),
    toy(
        "one learning rate for all runs",
        "simulator",
        "torch.tensor(rates, dtype=dtype)",
        "torch.tensor(rates[:1], dtype=dtype)",
    ),
    toy("held entropy over the last half", "trajectory", "values.shape[-1] // 3", "values.shape[-1] // 2"),
    toy("pass@k of one draw less", "trajectory", "(1 - p) ** k", "(1 - p) ** max(k - 1, 1)"),
    toy(
        "settings and seeds swapped",
        "settings",
        "[value for value in values for _ in seeds]",
        "[value for _ in seeds for value in values]",
    ),
    toy("enumerated outcomes counted, not weighed", "control", "(mask * self.frequency).sum(-1)", "mask.sum(-1)"),
    toy(
        "pure with a little signal",
        "environments",
        "reward_right=0.5, reward_wrong=0.5",
        "reward_right=0.5, reward_wrong=0.45",
    ),
    toy("on with two passes", "environments", "passes=1, lr=1.0", "passes=2, lr=1.0"),
    toy("trap whose rare arm fails sometimes", "environments", "(0.5, 1.0, *14", "(0.5, 0.9, *14"),
    common("QAE's quantile over one member more", "numbers/segments", ".clamp(min=1) - 1  #", ".clamp(min=1)  #"),
    common(
        "whitening over groups, not over responses",
        "advantages",
        "(reduce.sum(count) - 1).clamp(min=1)",
        "reduce.sum(count) * 2",
    ),
)
"""Faults tried after the tests were extended."""
FAULTS = UNCLAIMED + INVENTED
