"""Where Clip-Higher raises the entropy: Revisiting Entropy, sections 6.1 and 6.2, figures 3 and 12."""

from matplotlib.figure import Figure

from entrostat.surrogates.ratio_clip import PPO

from ..trajectory import Array
from .checks import Values, above, every, numbers_of, rising, settle, told
from .clipping import exchanged
from .live_case import NOISY, OFTEN_REUSED, Live, within
from .memory import remember
from .mutations import Mutation, Swap, constant
from .pictures import panels, picture
from .registry import Effort, Finding, claim, holds_if
from .runs import entropies

PAPER = "Revisiting Entropy"
SURE = 9.0
"""Standard deviation of initial logits with an entropy near .37 nats, that of the paper's model before training."""
NARROW, WIDE = 0.28, 0.8
"""Upper bounds of Clip-Higher: the paper's, and the widest of STEER's figure 17."""
SIZE = {"env": "noisy", "states": 64, "rollouts": 300}
"""Size of the runs at any effort: changes of a few hundredths of a nat need many states."""
PASSES = (2, 4, 8)
UPDATES = (4, 8)
"""Numbers of updates under the condition: with fewer, the bounds stop hardly any token."""
STARTS = {"noisy": 2.0, "sure": SURE}
"""Standard deviation of the initial logits by start."""


@remember
def under(effort: Effort, eps_high: float, logit_std: float, passes: int) -> Array:
    """Return the entropy under Clip-Higher with these numbers, (runs, rollouts + 1)."""
    args = {"eps_high": eps_high}
    return entropies(effort, controller="clip_higher", controller_args=args, logit_std=logit_std, passes=passes, **SIZE)


def gain(entropy: Array) -> Values:
    """Return the final minus the initial entropy, (runs,)."""
    change: Values = entropy[:, -1] - entropy[:, 0]
    return change


BOUNDS_EXCHANGED = Mutation("the bounds were exchanged", Swap(PPO, "ratio_bounds", exchanged))
ONCE = Mutation(
    "samples were used once",
    Swap(__name__, "entropies", lambda f: lambda *at, **config: f(*at, **config | {"passes": 1})),
)
AS_SURE = "the policy starts as sure as the paper's model"


@claim(
    "clip-higher",
    paper=PAPER,
    source="section 6.1, figure 3",
    words="Clip-Higher prevents the collapse of the entropy, and even increases the entropy",
    statement=r"\varepsilon_{\mathrm{high}} = 0.28 \ \Rightarrow\ H_{\mathrm{end}} > H_0",
    assumption=f"samples reused in {PASSES[-1]} passes, bounds .2/.28; noisy, which starts at 1.64 nats",
    setting="Qwen2.5-Math-7B, whose entropy is .37 nats before training (appendix E.2) and .54 after it (table 2)",
    threshold="final H above the initial one; the null's below it",
    null="the default bounds, .2/.2",
    expected=holds_if(AS_SURE),
    mutations=(
        BOUNDS_EXCHANGED,
        Mutation("nothing were clipped", Swap(PPO, "ratio_bounds", constant((0.0, float("inf"), float("inf"))))),
        ONCE,
    ),
    live=Live(
        "clip-higher",
        turned={"std": 2.0},
        conditions=(within("std", low=8, stated=False), OFTEN_REUSED, NOISY),
    ),
)
def clip_higher(effort: Effort) -> Finding:
    """The entropy moves to the level that the bounds hold it at. From 1.64 nats it falls there under Clip-Higher too,
    further from a collapse than under the default bounds; from the entropy of the paper's model it rises, where the
    default bounds let it fall."""
    found = {start: gain(under(effort, NARROW, std, PASSES[-1])) for start, std in STARTS.items()}
    default = {start: gain(under(effort, 0.2, std, PASSES[-1])) for start, std in STARTS.items()}
    apart = above(-default["sure"])
    starts = {start: under(effort, NARROW, std, PASSES[-1])[:, 0] for start, std in STARTS.items()}
    return Finding(
        "ΔH: " + ", ".join(f"{told(change)} from {starts[start].mean():.2f} nats" for start, change in found.items()),
        numbers_of({f"ΔH, {start}": x for start, x in found.items()} | {f"H0, {k}": x for k, x in starts.items()}),
        *settle(above(found["noisy"]) & apart, AS_SURE, above(found["sure"]) & apart),
        null="ΔH " + ", ".join(f"{told(x)} from {starts[start].mean():.2f}" for start, x in default.items()),
    )


OFTEN = f"{AS_SURE}, ε_high = {WIDE:g} and M ≥ {UPDATES[0]}"


@claim(
    "off-policy-rising",
    paper=PAPER,
    source="section 6.2, figure 12",
    words="more updates on a rollout amplify the change of the entropy: under Clip-Higher, where it rises, it rises "
    "faster",
    statement=r"M_1 < M_2 \ \Rightarrow\ 0 < \Delta H(M_1) < \Delta H(M_2)",
    assumption="bounds .2/.28, 2, 4 and 8 updates; noisy, which starts at 1.64 nats",
    setting="Qwen2.5-Math-7B, .37 nats before training; mini-batches of one batch instead of passes over all of it",
    threshold="ΔH above 0 and rising with M, in paired runs: the paper ranks curves",
    null="the default bounds, .2/.2, under which it must not rise",
    expected=holds_if(OFTEN),
    mutations=(BOUNDS_EXCHANGED, ONCE),
    live=Live(
        "reuse-rising",
        turned={"std": 2.0},
        conditions=(
            within("std", low=8, stated=False),
            within("eps_high", low=0.8, stated=False),
            within("least", low=4, stated=False),
        ),
    ),
)
def off_policy_rising(effort: Effort) -> Finding:
    """One or two updates leave nearly every ratio within its bounds, so that Clip-Higher is GRPO and the entropy falls.
    More updates do not amplify a rise that is there: they make it, by giving the bounds tokens to stop. From a start as
    sure as the paper's, and with a wider bound, four updates raise the entropy and eight raise it further."""
    stated = {m: gain(under(effort, NARROW, STARTS["noisy"], m)) for m in PASSES}
    sure = {m: gain(under(effort, NARROW, SURE, m)) for m in PASSES}
    wide = {m: gain(under(effort, WIDE, SURE, m)) for m in PASSES}
    default = {m: gain(under(effort, 0.2, SURE, m)) for m in UPDATES}
    apart = every(above(-change) for change in default.values())

    def faster(found: dict[int, Values], updates: tuple[int, ...]) -> tuple[Values, ...]:
        return tuple(found[m] for m in updates)

    first, second = faster(stated, PASSES), faster(wide, UPDATES)
    groups = {"as stated": stated, "sure start": sure, f"sure start, ε_high {WIDE:g}": wide}
    return Finding(
        "ΔH "
        + "; ".join(
            f"{name}: " + ", ".join(f"M = {m} {told(x)}" for m, x in found.items()) for name, found in groups.items()
        ),
        numbers_of({f"ΔH, {name}, M = {m}": x for name, found in groups.items() for m, x in found.items()}),
        *settle(
            above(first[0]) & rising(*first) & apart,
            OFTEN,
            above(second[0]) & rising(*second) & apart,
        ),
        null="ΔH from the sure start " + ", ".join(f"M = {m} {told(x)}" for m, x in default.items()),
    )


@picture("clip-higher", caption="Entropy under Clip-Higher and under the default bounds, from two starts.")
def draw_starts(figure: Figure, effort: Effort) -> None:
    clips = {f"Clip-Higher .2/{f'{NARROW:g}'[1:]}": NARROW, "default .2/.2": 0.2}
    last = PASSES[-1]
    panels(
        figure,
        {
            start: {name: under(effort, high, std, last) for name, high in clips.items()}
            for start, std in STARTS.items()
        },
    )
