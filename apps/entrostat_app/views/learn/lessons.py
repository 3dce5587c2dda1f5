"""Lessons of the course: their words, runs and questions, without anything that draws. Page Learn and published pages
show them.

Each lesson is a small experiment on a bandit: predict which run has more of a measure, move one control, read the
answer, which is measured in the runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from toybandit import Trajectory, picture
from toybandit.picture import HELD, PLAIN
from toybandit.settings import simulate_each
from toybandit.trajectory import last_third

from ...shared import bandit, simulations
from ...shared.controls import Control
from ...shared.picture_target import PICTURE_TARGET
from ...shared.presets import PRESETS

SEEDS = picture.SEEDS
CONFIDENCE = 0.95
NEITHER = picture.NEITHER
"""Answer if the seeds do not tell the runs apart."""

Settings = Mapping[str, Any]
"""Values of the playground's controls that differ from their defaults."""


@dataclass(frozen=True)
class Source:
    """Section of a paper."""

    paper: str
    number: str
    """Number on arXiv."""
    section: str
    place: str = ""
    """Name of the section in the PDF, as LaTeX writes it; a reader that does not know it opens the first page."""

    @property
    def address(self) -> str:
        """Address of the section."""
        return f"https://arxiv.org/pdf/{self.number}" + (f"#nameddest={self.place}" if self.place else "")

    @property
    def name(self) -> str:
        return f"{self.paper}, {self.section}"


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """Lesson: its words, a control, the runs that the control moves, and the question about them.

    In `text` and `why`, [words](PART) are linked to a part of the picture: H, R and P are the panels of entropy, reward
    and pass@k, numbers are runs in their order, and T is the target.
    """

    title: str
    minutes: int
    """Time that a class takes for it."""
    setting: str
    """Description of the runs, in a sentence or two."""
    text: str
    """Background for reading the picture."""
    question: str
    """Question that the name of a run, or NEITHER, answers; `measure` decides."""
    measure: Callable[[Trajectory], NDArray[np.float64]]
    """Number of each seed, (runs,): the run with the highest mean is the answer."""
    measured: str
    """Name of what `measure` returns, with its unit."""
    move: Control
    runs: Callable[[Any], Mapping[str, Settings]]
    """Settings of each run by name, for a value of `move`."""
    why: str
    """Explanation of the answer."""
    next: str
    """Suggestion of what to try."""
    goes_on: str
    """Preset to open in the playground."""
    sources: tuple[Source, ...]
    pass_k: int | None = None
    """k of the panel of pass@k; None for no panel."""
    names: tuple[str, ...] = field(init=False)
    """Names of the runs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.runs(self.move.default)))

    @property
    def choices(self) -> tuple[str, ...]:
        """Possible predictions."""
        return (*self.names, NEITHER)

    @property
    def positions(self) -> list[float]:
        """Positions of the slider of `move`."""
        low, high, step = self.move.low, self.move.high, self.move.step
        assert low is not None and high is not None and step is not None  # noqa: PT018
        return [round(float(value), 9) for value in np.linspace(low, high, round((high - low) / step) + 1)]

    def beside(self, value: float) -> list[float]:
        """Return the positions of the slider next to a value."""
        at = int(np.abs(np.asarray(self.positions) - value).argmin())
        return [*self.positions[at + 1 : at + 2], *self.positions[max(at - 1, 0) : at]]

    def simulate(self, value: float) -> dict[str, Trajectory]:
        """Return the runs by name, with `move` at this value."""
        runs = self.runs(round(float(value), 9))
        return {name: simulations.run(bandit.config_at(values), SEEDS) for name, values in runs.items()}

    def simulate_all(self) -> list[dict[str, Trajectory]]:
        """Return the runs at each position of `move`, as `simulate` does, without predictions."""
        at = [self.runs(value) for value in self.positions]
        kept = self.pass_k is not None
        each = [
            simulate_each([bandit.config_at(runs[name]) for runs in at], SEEDS, keep_policies=kept)
            for name in self.names
        ]
        return [dict(zip(self.names, runs, strict=True)) for runs in zip(*each, strict=True)]

    def right(self, runs: Mapping[str, Trajectory]) -> str:
        """Return the answer to the question: the name of a run, or NEITHER if the first two cannot be told apart.

        Runs have the same random numbers, so their difference is taken seed by seed (95% interval of Student's t).
        """
        found = {name: self.measure(run) for name, run in runs.items()}
        first, second = sorted(found, key=lambda name: -found[name].mean())[:2]
        gaps = found[first] - found[second]
        return first if gaps.mean() > margin(len(gaps)) * gaps.std(ddof=1) else NEITHER

    def verdict(self, runs: Mapping[str, Trajectory]) -> str:
        """Return the answer and the numbers that it rests on."""
        numbers = ", ".join(f"{name} {self.measure(run).mean():z.2f}" for name, run in runs.items())
        right = self.right(runs)
        return f"{right[:1].upper()}{right[1:]}. {self.measured}: {numbers}."


def margin(count: int) -> float:
    """Return half the interval of a mean of `count` numbers, in standard deviations of theirs."""
    return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) / sqrt(count)


def preset(name: str, **changes: Any) -> dict[str, Any]:
    """Return the settings of a preset, with changes; double underscores stand for dots."""
    return {**PRESETS[name].query, **{key.replace("__", "."): value for key, value in changes.items()}}


FORGETS = {"env": bandit.SHARED, "f.pool": "128", "f.lr": 0.3, "f.rollouts": 120}
"""Settings of GRPO where prompts share weights, with fewer prompts, so that a table of them is small."""


def last_entropy(run: Trajectory) -> NDArray[np.float64]:
    return run.entropy[:, -1]


def last_reward(run: Trajectory) -> NDArray[np.float64]:
    return run.reward[:, -1]


def last_passed(run: Trajectory) -> NDArray[np.float64]:
    """Return pass@K of the picture at the end, (runs,)."""
    return run.pass_at(picture.K)[:, -1]


def distance(run: Trajectory) -> NDArray[np.float64]:
    """Return the distance of the last third's mean entropy from the last target, nats, (runs,)."""
    assert run.target is not None
    return np.abs(last_third(run.entropy).mean(-1) - run.target[:, -1])


def undershoot(run: Trajectory) -> NDArray[np.float64]:
    """Return how far the entropy falls below its target at most, nats, (runs,)."""
    assert run.target is not None
    return run.target[:, -1] - run.entropy.min(-1)


def forgotten(run: Trajectory) -> NDArray[np.float64]:
    """Return how much of pass@8 on held-out prompts is lost in the run, (runs,)."""
    assert run.held_out is not None
    found = run.held_out.pass_at(8)
    return found[:, 0] - found[:, -1]


def learning_rate(default: float, low: float, high: float) -> Control:
    """Return the control of the learning rate of all runs of a lesson."""
    said = "Step size on the mean gradient of a state, in all runs."
    return Control(
        key="move.lr", label="Learning rate", symbol="η", default=default, low=low, high=high, step=0.25, help=said
    )


MECHANISM, REVISITING, STEER, ENTROPIC = (
    ("Entropy Mechanism", "2505.22617"),
    ("Revisiting Entropy", "2511.05993"),
    ("STEER", "2510.10150"),
    ("EntroPIC", "2511.15248"),
)
"""Papers of the course: name and number on arXiv."""


LESSONS = (
    Lesson(
        title="The trap",
        minutes=10,
        setting=picture.SETTING,
        text="The [entropy](H) H = −Σ p log p measures how undecided the policy is: ln 16 = 2.8 nats if all answers "
        "are equally likely, 0 if one is certain. Likely answers that earn reward become more likely, so entropy "
        "falls, most of it early: [GRPO](0) follows the reward alone. A [thermostat](1) adds a bonus for entropy,"
        " and makes it larger or smaller until the entropy is at its [target](T). [pass@8](P) is the chance that "
        "one of 8 draws is the answer that always pays.",
        question=picture.QUESTION,
        measure=last_passed,
        measured=f"pass@{picture.K} at the end",
        move=PICTURE_TARGET,
        runs=lambda target: {
            PLAIN: preset("trap"),
            HELD: preset("trap", controller=("thermostat",), target=target),
        },
        why="[GRPO](0) settles for the answer that pays half of the time. Once its entropy is gone, it draws no other, "
        "and learns of none. Under the [thermostat](1) the best answer is still drawn now and then, and each draw "
        "makes it likelier. Below 1 nat some prompts never find it. Above 1.2 nats all do, but [reward](R) falls "
        "again: at a high [target](T) the policy must go on drawing answers that pay less.",
        next="At which target does the thermostat earn the most reward?",
        goes_on="trap",
        sources=(
            Source(*MECHANISM, "section 2, the collapse of policy entropy", "section.2"),
            Source(*REVISITING, "section 5.2, entropy and performance", "subsection.5.2"),
        ),
        pass_k=picture.K,
    ),
    Lesson(
        title="Why clip-higher helps",
        minutes=6,
        setting="Samples are used for several updates, and the ratio of new to old probability is clipped. Both runs "
        "are plain GRPO; one has a higher upper bound.",
        text="The **upper** bound of 1.2 stops unlikely answers first: from .01 they can grow only to .012. Yet it is "
        "their growth that raises [entropy](H). A [higher bound](1) leaves them some room; the "
        "[usual one](0) stays for comparison.",
        question="Which ends with more entropy?",
        measure=last_entropy,
        measured="Entropy at the end (nats)",
        move=Control(
            key="clip_higher.eps_high",
            label="Upper bound",
            symbol="ε_high",
            default=0.4,
            low=0.2,
            high=0.6,
            step=0.04,
            help="The ratio is clipped at 1 + ε_high in the run with the higher bound; .2 is the usual bound.",
        ),
        runs=lambda high: {
            "clip .2": preset("clip-higher", controller=()),
            "clip higher": preset("clip-higher", clip_higher__eps_high=high),
        },
        why="Entropy falls in [both runs](H), but where unlikely answers may grow [further](1), it falls less. At .2 "
        "both runs are the same.",
        next="Raise the upper bound step by step. From which value on can the runs be told apart?",
        goes_on="clip-higher",
        sources=(
            Source("DAPO", "2503.14476", "section 3.1, clip-higher", "subsection.3.1"),
            Source(*REVISITING, "section 6.1, clipping threshold", "subsection.6.1"),
        ),
    ),
    Lesson(
        title="Positives only",
        minutes=5,
        setting="Each response is better or worse than its group's mean. One run trains on both kinds, one only on the "
        "better ones, one only on the worse ones.",
        text="Training only on the [better ones](1) is like fine-tuning on one's own successes: it sharpens the "
        "policy. Training only on the [worse ones](2) takes probability away from them and spreads it over all other "
        "answers. Most controllers balance these two effects.",
        question="Which ends with the most entropy?",
        measure=last_entropy,
        measured="Entropy at the end (nats)",
        move=learning_rate(1.0, 0.25, 2.0),
        runs=lambda lr: {
            "both": {"lr": lr, "rollouts": 30},
            "positives": preset("positives-only", lr=lr, rollouts=30),
            "negatives": preset("negatives-only", lr=lr, rollouts=30),
        },
        why="[Positives](1) reinforce what is already likely: at a learning rate of 1 and above, theirs is the first "
        "entropy to go. [Negatives](2) push likely answers down: entropy stays higher, and the [reward](R) rises more "
        "slowly.",
        next="Which of the three earns the most reward at the end, and which at the same entropy?",
        goes_on="positives-only",
        sources=(
            Source(*REVISITING, "section 7.3, positive-advantage reweighting", "subsection.7.3"),
            Source(*STEER, "section 4, existing interventions", "section.4"),
        ),
    ),
    Lesson(
        title="P leaves an error, PI does not",
        minutes=6,
        setting="EntroPIC weights better and worse responses by the error: the entropy's distance from a target of .8 "
        "nats.",
        text="[P control](0) uses the current error and settles where its effect cancels the drift of training, which "
        "is off the [target](T). [PI control](1) adds the sum of all errors, which grows until the error is gone.",
        question="Which ends further from the target?",
        measure=distance,
        measured="Distance from the target over the last third (nats)",
        move=learning_rate(1.5, 0.5, 2.5),
        runs=lambda lr: {
            "P control": preset("p-control", lr=lr, rollouts=60),
            "PI control": preset("pi-control", lr=lr, rollouts=60),
        },
        why="[P control](0) acts only while there is an error, so an error must remain. In [PI control](1) the sum of "
        "past errors holds the entropy once the error is gone.",
        next="Raise the learning rate from 1 to 2. Which of the two errors changes?",
        goes_on="pi-control",
        sources=(Source(*ENTROPIC, "section 4.2, theorems 4.2 and 4.3", "subsection.4.2"),),
    ),
    Lesson(
        title="Windup",
        minutes=5,
        setting="Two PI controllers start far above their target of .5 nats. Their output has a bound.",
        text="While the output is at its bound, a larger sum of errors has no effect, and if the sum [goes on](1) "
        "growing, it must be undone later: the [entropy](H) overshoots the [target](T). **Anti-windup** [stops the "
        "sum](0) while the output is at its bound.",
        question="Which falls further below the target?",
        measure=undershoot,
        measured="Furthest below the target (nats)",
        move=Control(
            key="entropic.ki",
            label="Integral gain",
            symbol="Ki",
            default=0.3,
            low=0.0,
            high=0.5,
            step=0.05,
            help="Weight of the sum of errors, in both runs.",
        ),
        runs=lambda ki: {
            "sum stops": preset("windup", rollouts=40, entropic__anti_windup=True, entropic__ki=ki),
            "sum goes on": preset("windup", rollouts=40, entropic__ki=ki),
        },
        why="At the start the error is large for many rollouts. The sum that [goes on](1) has collected them all and "
        "still pushes down when the entropy passes its [target](T). Without an integral gain there is no sum.",
        next="How small must the integral gain be for both runs to look alike?",
        goes_on="windup",
        sources=(Source(*ENTROPIC, "section 4.2; the bound on α is in the released code", "subsection.4.2"),),
    ),
    Lesson(
        title="When the theorem fails",
        minutes=6,
        setting="Theorem 4.3 of EntroPIC says that PI control brings the error to 0. Two runs start in the trap with a "
        "target of 1 nat: one is strictly on-policy, the other uses its samples four times.",
        text="[Strictly on-policy](0), with rewards of 0 and 1 and weights on all tokens (τ = 0), the weights scale "
        "the expected step but cannot change its direction. So [entropy](H) falls through the [target](T), and the "
        "controller runs to its bound without effect. The theorem needs **control authority**.",
        question="Which ends further from the target?",
        measure=distance,
        measured="Distance from the target over the last third (nats)",
        move=Control(
            key="entropic.tau",
            label="Smallest probability that is weighted",
            symbol="τ",
            default=0.0,
            low=0.0,
            high=0.8,
            step=0.1,
            help="In the on-policy run; at 0 all tokens are weighted.",
        ),
        runs=lambda tau: {
            "on-policy": preset("no-authority", entropic__tau=tau),
            "off-policy": preset("no-authority", passes=4),
        },
        why="With τ = 0 the weights of the [on-policy](0) run depend only on the sign of the advantage, and all they "
        "can do is to lengthen or shorten the step. It collapses, and stays in the trap: its [pass@64](P) and its "
        "[reward](R) are those of plain GRPO. Where the [entropy is held](1), both end higher.",
        next="Raise τ to .5, so that only likely tokens are weighted. What changes?",
        goes_on="no-authority",
        sources=(Source(*ENTROPIC, "section 4.3, high-probability samples", "subsection.4.3"),),
        pass_k=64,
    ),
    Lesson(
        title="Why your model forgets what you did not train",
        minutes=7,
        setting="A rollout trains 32 of 128 prompts, and 128 others are never trained. The logits of all are linear in "
        "the same 4 features, so prompts share weights; in the table each prompt has its own.",
        text="What is [learnt](R) for one prompt moves the others. [pass@8](P) is the chance that one of 8 responses "
        "to a prompt that is never trained is right. [GRPO](0) follows the reward; the [thermostat](1) holds the "
        "[entropy](H) at a [target](T), which at .4 is about what the policy starts with. Bands are wide, because "
        "seeds start far apart.",
        question="Which loses most pass@8 on the prompts that are never trained?",
        measure=forgotten,
        measured="pass@8 on held-out prompts lost",
        move=Control(
            key="held",
            label="Target",
            symbol="H*",
            unit="nats",
            default=0.4,
            low=0.1,
            high=0.6,
            step=0.05,
            help="Entropy that the thermostat holds.",
        ),
        runs=lambda target: {
            "GRPO": FORGETS,
            "thermostat": {**FORGETS, "controller": ("thermostat",), "target": target},
            "table": {**FORGETS, "f.features": bandit.TABLE},
        },
        why="[GRPO](0) makes the policy certain on prompts that it never sees, too: one response is right more often, "
        "but eight are alike, and [pass@8](P) falls. With [held entropy](1) it stays, and so does the reward. In a "
        "[table](2) nothing is shared: trained prompts are learnt by heart, and no other changes at all.",
        next="Lower the target step by step: reward rises. From where on is pass@8 lost? And above .4?",
        goes_on="held-out",
        sources=(
            Source("Limit of RLVR", "2504.13837", "abstract: pass@k of trained and base models"),
            Source(*REVISITING, "section 5.2, entropy and performance", "subsection.5.2"),
        ),
        pass_k=8,
    ),
)
