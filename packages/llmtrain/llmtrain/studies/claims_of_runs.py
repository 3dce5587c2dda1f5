"""Claims on the entropy of short runs: clip thresholds, off-policy updates, one sign of A, R = −a·e^H + b."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from entrostat.logs import laws

from .claim_registry import Array, Change, Finding, Margin, Measured, claim, faults, judged, told

WINDOW = 5
"""Rollouts that are averaged to a point of the law: the reward of one has a standard error of about .04."""
SEEN = 1 / 3
"""Share of a run to which the law is fitted, to predict the rest."""
LEAST = 0.5
"""Share of the variance that the law must explain."""
CLIPS = {
    "clip_lower": "Clip-Lower .28/.2",
    "grpo": "default .2/.2",
    "clip_higher": "Clip-Higher .2/.28",
    "clip_tighter": "Clip-Tighter .12/.2",
}


def taken_from(**arms: str) -> Change:
    """Return the fault that gives runs the measurements of other runs: taken_from(to="from")."""

    def change(measured: Measured) -> Measured:
        return measured._replace(
            entropy={**measured.entropy, **{to: measured.entropy[of] for to, of in arms.items()}},
            reward={**measured.reward, **{to: measured.reward[of] for to, of in arms.items()}},
        )

    return change


def late(measured: Measured, *arms: str) -> dict[str, Array]:
    """Return the mean entropy of runs by name over the last third of the shortest, (seeds,) each."""
    end = min(measured.entropy[name].shape[-1] for name in arms)
    return {name: measured.entropy[name][:, end - end // 3 : end].mean(-1) for name in arms}


def rising(values: Mapping[str, Array], *names: str) -> tuple[Margin, ...]:
    """Return the margins of the claim that each named value is above the one before, in paired runs."""
    return tuple(Margin(f"{high} − {low}", values[high] - values[low]) for low, high in pairwise(names))


def list_of(values: Mapping[str, Array]) -> str:
    return ", ".join(f"{name} {told(x)}" for name, x in values.items())


@claim(
    "clip-thresholds",
    needs=tuple(CLIPS),
    threshold="late H of Clip-Lower < default < Clip-Higher and default < Clip-Tighter, in paired runs: the paper "
    "ranks curves and gives no numbers",
    null="the default bounds: no difference",
    mutations=faults(
        {
            "the bounds were exchanged": taken_from(clip_lower="clip_higher", clip_higher="clip_lower"),
            "nothing were clipped": taken_from(clip_lower="grpo", clip_higher="grpo", clip_tighter="grpo"),
        }
    ),
)
def clip_thresholds(measured: Measured) -> Finding:
    """A wider upper bound lets unlikely successes grow and raises H; a wider lower bound lets unlikely failures shrink
    and lowers it."""
    found = late(measured, *CLIPS)
    margins = rising(found, "clip_lower", "grpo", "clip_higher") + rising(found, "grpo", "clip_tighter")
    text = list_of({CLIPS[name]: values for name, values in found.items()})
    return judged(f"late H: {text}", f"late H {told(found['grpo'])}", margins)


@claim(
    "clip-free",
    needs=("grpo", "clip_tighter", "clip_free"),
    threshold="late H above that of the default and of Clip-Tighter, in paired runs",
    null="the default bounds",
    mutations=faults(
        {
            "it clipped like the default": taken_from(clip_free="grpo"),
            "bounds raised the entropy": taken_from(clip_free="grpo", grpo="clip_free", clip_tighter="clip_free"),
        }
    ),
)
def clip_free(measured: Measured) -> Finding:
    """Without clipping the entropy would be the highest of all but Clip-Higher's."""
    found = late(measured, "clip_free", "grpo", "clip_tighter")
    margins = rising(found, "grpo", "clip_free") + rising(found, "clip_tighter", "clip_free")
    return judged(f"late H: {list_of(found)}", f"late H {told(found['grpo'])}", margins)


@claim(
    "off-policy-updates",
    needs=("grpo", "once", "short_steps"),
    threshold="H falls further with four updates on a rollout than with one, in paired runs: the paper ranks curves; "
    "and further than the null",
    null="four updates with a quarter of the learning rate: about as long a way as one",
    mutations=faults(
        {
            "later updates did not move the policy": taken_from(grpo="once"),
            "the whole way stayed the same": taken_from(grpo="short_steps"),
        }
    ),
)
def off_policy_updates(measured: Measured) -> Finding:
    """More updates on a rollout are more steps, so the entropy falls further where it falls."""
    found = late(measured, "grpo", "once", "short_steps")
    change = {name: values - measured.entropy[name][:, 0] for name, values in found.items()}
    four, once, short = change.values()
    return judged(
        f"ΔH: four updates {told(four)}, one {told(once)}",
        f"ΔH {told(short)}",
        (Margin("one − four", once - four), Margin("null − four", short - four)),
    )


@claim(
    "cor4.1-signs",
    needs=("positive_only", "grpo", "negative_only"),
    threshold="late H with positives < all < negatives, in paired runs: the corollary is about signs",
    null="learning from all samples: no difference",
    mutations=faults(
        {
            "the signs were exchanged": taken_from(positive_only="negative_only", negative_only="positive_only"),
            "no sample were dropped": taken_from(positive_only="grpo", negative_only="grpo"),
        }
    ),
)
def signs(measured: Measured) -> Finding:
    """Learning from successes alone sharpens the policy, learning from failures alone flattens it."""
    found = late(measured, "positive_only", "grpo", "negative_only")
    return judged(f"late H: {list_of(found)}", f"late H {told(found['grpo'])}", rising(found, *found))


def of_grpo(entropy: bool) -> Change:
    """Return the fault by which e^H would be e^(−H) (`entropy`), or the reward would not depend on H."""

    def change(measured: Measured) -> Measured:
        if entropy:
            return measured._replace(entropy={**measured.entropy, "grpo": -measured.entropy["grpo"]})
        order = np.random.default_rng(0).permutation(measured.reward["grpo"].shape[-1])
        return measured._replace(reward={**measured.reward, "grpo": measured.reward["grpo"][:, order]})

    return change


LAW_FAULTS = faults({"e^H were e^(−H)": of_grpo(True), "reward and entropy were of different rollouts": of_grpo(False)})


@claim(
    "law-fit",
    needs=("grpo",),
    threshold=f"R² of the law above {LEAST:g}, and above the null's: the sampling noise of points of {WINDOW} rollouts "
    "leaves no .95, which the bandit is asked for",
    null="a line in H, which has as many coefficients; a constant, R² = 0",
    mutations=LAW_FAULTS,
)
def law_fit(measured: Measured) -> Finding:
    """Reward costs entropy at a rate that hardly changes. A short run shows this only as far as its reward rises by
    more than the noise of its prompts, about .04 for a point."""
    entropy, reward = (
        x.reshape(len(x), -1, WINDOW).mean(-1) for x in (measured.entropy["grpo"], measured.reward["grpo"])
    )
    found = [laws.alternatives(h, r) for h, r in zip(entropy, reward, strict=True)]
    law, line = (np.array([each[name].r2 for each in found]) for name in ("exponential", "linear"))
    margins = Margin(f"R² − {LEAST:g}", law - LEAST), Margin("R² − R² of a line", law - line)
    first, *_, last = reward.reshape(len(reward), 3, -1).mean(-1).T
    gain = f"reward {told(first)} in the first third of a run, {told(last)} in the last"
    return judged(f"R² {told(law)}; {gain}", f"R² of a line in H {told(line)}", margins)


def prediction_errors(entropy: Array, reward: Array) -> dict[str, float]:
    """Return the RMSE of rewards after the share SEEN of a run, (steps,), by law, line in H and last WINDOW's mean."""
    found = laws.predict_end(entropy, reward, SEEN)
    n = found.law.n
    line = np.polyval(np.polyfit(entropy[:n], reward[:n], 1), entropy[n:])
    predicted = {"law": found.predicted, "constant": reward[n - WINDOW : n].mean(), "line in H": line}
    return {name: float(np.sqrt(((x - reward[n:]) ** 2).mean())) for name, x in predicted.items()}


@claim(
    "law-prediction",
    needs=("grpo",),
    threshold="fitted to the first third, a smaller RMSE than both nulls in paired runs: a small error alone says "
    "nothing",
    null=f"the reward stays at the mean of the last {WINDOW} rollouts; a line in H, fitted to the same points",
    mutations=LAW_FAULTS,
)
def law_prediction(measured: Measured) -> Finding:
    """The law says early what reward the remaining entropy will bring."""
    runs = zip(measured.entropy["grpo"], measured.reward["grpo"], strict=True)
    errors = [prediction_errors(*run) for run in runs]
    rmse = {name: np.array([one[name] for one in errors]) for name in errors[0]}
    law = rmse.pop("law")
    margins = tuple(Margin(f"RMSE, {name} − law", x - law) for name, x in rmse.items())
    return judged(f"RMSE {told(law)}", f"RMSE: {list_of(rmse)}", margins)
