"""Figures of The Entropy Mechanism on holding entropy: Clip-Cov, KL-Cov, entropy loss and reference KL."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ..trajectory import Array, Trajectory, last_third
from ..uncertainty import highest, mean
from .curves import curves, headline, stack, sweep, train
from .drawing import entropy_and_reward, legend_above, lines
from .registry import Effort, Measurement, figure, out_of_reach

SHARE = 0.02
"""Share of the samples that Clip-Cov and KL-Cov act on, unless it is swept. The paper's 2e-4 and 2e-3 are shares of
tokens; here a sample is a whole response, and they would select one sample per mini-batch."""


@figure(
    "entropy-mechanism-5",
    source="Entropy Mechanism, figure 5",
    shows="entropy and reward of GRPO, Clip-Higher, Clip-Cov and KL-Cov",
    changes_if="Clip-Cov or KL-Cov kept no more entropy than GRPO, or ended with no less reward, by two "
    "standard errors",
    draw=entropy_and_reward,
)
def methods(effort: Effort) -> Measurement:
    runs = {
        "GRPO": train(effort),
        "Clip-Higher": train(effort, controller="clip_higher"),
        "Clip-Cov": train(effort, controller="clip_cov", controller_args={"k": SHARE}),
        "KL-Cov": train(effort, controller="kl_cov", controller_args={"k": SHARE}),
    }
    numbers = headline(runs)
    entropy, reward = (
        ", ".join(f"{name} {numbers[f'{name}/{key}']:.{digits}f}" for name in runs)
        for key, digits in (("entropy", 2), ("reward", 4))
    )
    return Measurement(
        curves(runs),
        numbers,
        "In the paper, Clip-Cov and KL-Cov keep more entropy and end with higher accuracy. Here they keep more "
        f"entropy ({entropy} nats), which costs reward ({reward}).",
    )


def draw_shares(canvas: Figure, data: Measurement) -> None:
    for axes, (method, part) in zip(canvas.subplots(1, 2, sharey=True), data.series("method").items(), strict=True):
        lines(axes, part, "rollout", "entropy")
        axes.set(xlabel="rollout", ylim=(0, None))
        legend_above(axes, method)
    canvas.axes[0].set(ylabel="entropy (nats)")


def roughness(trajectory: Trajectory) -> Array:
    """Return the standard deviation of the entropy change per rollout over the last third, (runs,)."""
    return last_third(np.diff(trajectory.entropy)).std(1)


@figure(
    "entropy-mechanism-6",
    source="Entropy Mechanism, figure 6",
    shows="entropy under Clip-Cov with growing shares, and under KL-Cov with growing coefficients",
    changes_if="the entropy fell from one strength to the next, or KL-Cov's steps scattered less by two "
    "standard errors",
    draw=draw_shares,
)
def strengths(effort: Effort) -> Measurement:
    methods = {
        "Clip-Cov": sweep(effort, "k", (0.002, 0.01, 0.02, 0.05, 0.1), controller="clip_cov"),
        "KL-Cov": sweep(effort, "beta", (0.01, 0.1, 1, 10), controller="kl_cov", controller_args={"k": SHARE}),
    }
    table = stack([{**curves(runs), "method": method} for method, runs in methods.items()])
    numbers = {f"{method}/{key}": value for method, runs in methods.items() for key, value in headline(runs).items()}
    alike = {"Clip-Cov": f"k = {SHARE:g}", "KL-Cov": "beta = 1"}
    rough = {method: roughness(methods[method][name]) for method, name in alike.items()}
    numbers |= {f"{method}/roughness": mean(values) for method, values in rough.items()}
    numbers["roughness of KL-Cov − Clip-Cov"] = mean(rough["KL-Cov"] - rough["Clip-Cov"])
    spans = {method: [numbers[f"{method}/{name}/entropy"] for name in runs] for method, runs in methods.items()}
    return Measurement(
        table,
        numbers,
        "As in the paper, entropy grows with the share of samples clipped ("
        f"{spans['Clip-Cov'][0]:.2f} to {spans['Clip-Cov'][-1]:.2f} nats) and with the KL coefficient "
        f"({spans['KL-Cov'][0]:.2f} to {spans['KL-Cov'][-1]:.2f}). But KL-Cov's curves are not steadier here: at "
        f"about the same entropy ({alike['KL-Cov']} and {alike['Clip-Cov']}) its steps scatter by "
        f"{numbers['KL-Cov/roughness']:.4f} nats, Clip-Cov's by {numbers['Clip-Cov/roughness']:.4f} (difference "
        f"{numbers['roughness of KL-Cov − Clip-Cov']:+.4f}).",
    )


def against_none(runs: Mapping[str, Trajectory], effect: str) -> Measurement:
    """Return the measurement of a sweep whose first value is no regularisation; effect: the paper's result."""
    numbers = headline(runs)
    entropy = [numbers[f"{name}/entropy"] for name in runs]
    reward = [numbers[f"{name}/reward"] for name in runs]
    best, *equals = highest({name: run.reward_held for name, run in runs.items()})
    also = f", and not told apart from it with {', '.join(equals)}" if equals else ""
    return Measurement(
        curves(runs),
        numbers,
        f"{effect} Here, from the smallest to the largest coefficient, entropy goes from {entropy[0]:.2f} to "
        f"{entropy[-1]:.2f} nats and reward from {reward[0]:.3f} to {reward[-1]:.3f}; reward is highest with "
        f"{best}{also}.",
    )


@figure(
    "entropy-mechanism-13",
    source="Entropy Mechanism, figure 13",
    shows="entropy and reward with an entropy loss, for growing coefficients",
    changes_if="some coefficient gave more reward than none by two standard errors",
    draw=entropy_and_reward,
)
def entropy_loss(effort: Effort) -> Measurement:
    runs = sweep(effort, "coef", (0, 0.003, 0.01, 0.03, 0.1), controller="entropy_bonus")
    return against_none(
        runs, "In the paper, the entropy loss is sensitive to its coefficient and does not improve accuracy."
    )


@figure(
    "entropy-mechanism-14",
    source="Entropy Mechanism, figure 14",
    shows="entropy and reward with a KL penalty towards the initial policy, for growing coefficients",
    changes_if="some coefficient gave more reward than none by two standard errors",
    draw=entropy_and_reward,
)
def reference_kl(effort: Effort) -> Measurement:
    runs = sweep(effort, "beta", (0, 0.001, 0.01, 0.1, 0.3), controller="kl_ref")
    return against_none(runs, "In the paper, the reference KL stabilises entropy and costs accuracy.")


out_of_reach("entropy-mechanism-5-middle", "response length: an answer is one arm")
out_of_reach("entropy-mechanism-8a", "language training sets: here only the bandit itself can change, as in figure 3")
out_of_reach("entropy-mechanism-9", "instruction-tuned models: a bandit has no earlier tuning")
