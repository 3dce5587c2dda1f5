"""Quadrants: the direction in which tokens move the entropy, and the effect of controllers on them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from toybandit import Config
from toybandit.rollout_tokens import RolloutTokens, Update, by_quadrant
from toybandit.token_surface import FORMULAS

from ...shared import bandit, charts, exports, presets, simulations
from ...shared.controls import Control
from . import quadrant_pictures, token_plans

ASKED = "tokens asked for"
"""Session key of the slow run that the user has asked for."""
FIRST, LAST = "first", "last"
STEER, EXACT = quadrant_pictures.BOUNDARIES
FORMULA = Control(
    key="q.formula",
    label="Formula",
    default="exact",
    options=FORMULAS,
    help="exact: the full first-order change, if the other arms share 1 − p geometrically. own logit: STEER's "
    "δ(p, H) = −p(1−p)(log p + H). Ω: −(1−p)(log p + H). OPEFO: −(1−p)²(log p + H). Cov: −(log p + H).",
)
UPDATE = Control(
    key="q.update",
    label="Update of the rollout",
    default=LAST,
    options=(FIRST, LAST),
    help="In the first update the policy still equals the one that sampled, so nothing is clipped. In the last update "
    "it differs.",
)
CUT = Control(
    key="q.cut",
    label="A token is likely above",
    default=STEER,
    options=(STEER, EXACT),
    help="e^(−H) is STEER's boundary. At p*, which is never below it, the exact entropy change of a token switches "
    "sign.",
)
AXIS = Control(
    key="q.axis",
    label="Horizontal axis",
    default=quadrant_pictures.RELATIVE,
    options=(quadrant_pictures.RELATIVE, quadrant_pictures.ABSOLUTE),
    help="States differ in entropy. Relative to e^(−H), STEER's boundary is at 1 for all of them.",
)
MEASURE = Control(
    key="q.measure",
    label="Measure",
    default="mean weight",
    options=tuple(token_plans.MEASURES),
    help="mean weight: factor on the advantage. kept share: share of tokens that still get a policy gradient after "
    "clipping and dropping. entropy change: first-order change of the mean entropy, thousandths of a nat at learning "
    "rate 1.",
)
MOST = 6
"""Upper limit of controllers beside the run's own."""
DEFAULT = ("clip_higher", "clip_cov (k=0.02)", "steer", "entropic (tau=0.5, ki=0.05)", "positive_only")
MOMENT = 10


def page() -> None:
    """Draw the surface with a run's tokens, the tokens in their quadrants, and other controllers on these tokens."""
    st.title("Quadrants")
    st.caption(
        "A rewarded token lowers the entropy if it is likely and raises it if it is not; a penalized token does the "
        "opposite. This makes four quadrants, and the boundary between likely and unlikely is easy to misplace."
    )
    presets.draw_links("quadrants")
    with st.sidebar:
        controller = bandit.draw_controller()
        environment = bandit.draw_environment()
        seed = bandit.SEED.draw()
    tokens, update, exact = None, None, False
    try:
        config = bandit.config(environment, controller)
        moment, number, exact = draw_moment(config)
        update = update_or_ask(config, seed, moment, number)
        tokens = None if update is None else token_plans.tokens_of(update)
    except ValueError as error:
        st.error(str(error))
    left, right = st.columns(2, gap="medium")
    with left:
        draw_surface(tokens)
    with right:
        if tokens is not None:
            draw_tokens(tokens, exact)
    if update is not None and tokens is not None:
        draw_controllers(update, tokens, exact, controller.get("target"))


def draw_moment(config: Config) -> tuple[int, int, bool]:
    """Draw the controls of the moment; return the rollout, the index of its update, and True if p* is the boundary."""
    last = config.environment().rollouts - 1
    if st.session_state.get("q.t", 0) > last:
        st.session_state["q.t"] = last
    left, middle, right = st.columns([2, 1, 1], gap="medium")
    with left:
        moment = Control(
            key="q.t",
            label="Moment",
            symbol="t",
            unit="rollout",
            default=min(MOMENT, last),
            low=0,
            high=last,
            help="Rollout whose tokens are shown.",
        ).draw()
    with middle:
        number = 0 if UPDATE.draw() == FIRST else -1
    with right:
        exact = CUT.draw() == EXACT
    return moment, number, exact


def update_or_ask(config: Config, seed: int, moment: int, number: int) -> Update | None:
    """Return the update; None if its run is slow and the user has not asked for it. Raises ValueError in one line."""
    wanted = f"tokens {simulations.identity(config)} {seed} {moment} {number}"
    if not simulations.is_live([replace(config, rollouts=moment + 1)]) and st.session_state.get(ASKED) != wanted:
        if not st.button(f"Simulate {moment + 1} rollouts for their tokens", type="primary"):
            return None
        st.session_state[ASKED] = wanted
    with st.spinner("Simulating"):
        return token_plans.update_of(config, seed, moment, number)


# Surface --------------------------------------------------------------------------------------------------------------


def draw_surface(tokens: RolloutTokens | None) -> None:
    """Draw the entropy change over p and H, with the tokens of the run."""
    st.header("Probability and entropy")
    formula = FORMULA.draw()
    arms = Config().environment().arms
    picture = quadrant_pictures.surface_picture(formula, arms, tokens)
    words = told_surface(formula, tokens)
    charts.show(picture, key="surface")
    st.write(words)
    exports.draw(picture, "quadrants-surface", [])


def told_surface(formula: str, tokens: RolloutTokens | None) -> str:
    """Return the boundary at which the sign switches, and the share of tokens between the boundaries, in words."""
    if formula == "exact":
        text = "By the exact formula, a rewarded token raises the entropy below p* (not e^(−H)) and lowers it above."
    else:
        text = f"By {formula}, the sign switches at e^(−H), due to its factor log p + H; the exact one switches at p*."
    text += " Below log 2 = 0.69 nats no state has a token at either boundary."
    if tokens is None or not len(tokens.p):
        return text
    between = float(np.logical_and(tokens.likely, np.logical_not(tokens.beyond)).mean())
    return f"{text} Of the {len(tokens.p):,} tokens of this update (dots) {between:.1%} lie between their boundaries."


# Tokens ---------------------------------------------------------------------------------------------------------------


def draw_tokens(tokens: RolloutTokens, exact: bool) -> None:
    """Draw the tokens in their quadrants."""
    st.header("Tokens in their quadrants")
    axis = AXIS.draw()
    words = told_tokens(tokens, exact)
    if not (tokens.advantage != 0).any():
        st.info(words, icon=":material/visibility:")
        return
    picture = quadrant_pictures.token_picture(tokens, exact=exact, axis=axis)
    charts.show(picture, key="tokens")
    st.write(f"{words} Hollow tokens get no gradient: they are clipped, or dropped by the controller.")
    exports.draw(picture, "quadrants-tokens", [])


def told_tokens(tokens: RolloutTokens, exact: bool) -> str:
    """Return the number of tokens per quadrant and the share that does the opposite of its quadrant, in words."""
    found, names = by_quadrant(tokens, exact=exact), tokens.quadrant(exact=exact)
    acting = names != ""
    if not acting.any():
        return "At this moment, rewards are equal within each group: all advantages are 0, and no token has an effect."
    counts = ", ".join(f"{name} {part.tokens}" for name, part in found.items())
    lowers = np.isin(names, ("I", "III"))
    against = float((lowers != (tokens.flow < 0))[acting].mean())
    text = f"Tokens: {counts}" + (f", without advantage {(~acting).sum()}." if not acting.all() else ".")
    if against:
        return (
            f"{text} {against:.1%} of them do the opposite of what their quadrant says: they are between e^(−H) and p*."
        )
    return f"{text} Each token does what its quadrant says: I and III lower the entropy, II and IV raise it."


# Controllers ----------------------------------------------------------------------------------------------------------


def draw_controllers(update: Update, tokens: RolloutTokens, exact: bool, target: float | None) -> None:
    """Draw the effect of several controllers on the quadrants of the same tokens."""
    st.header("Controllers on the same tokens")
    left, right = st.columns([3, 1], gap="medium")
    with left:
        names = Control(
            key="q.with",
            label=f"Controllers besides the run's own (at most {MOST})",
            default=DEFAULT,
            options=tuple(token_plans.choices()),
            help="Hyperparameters are those of the leaderboard. A closed loop starts anew here and has observed only "
            "this rollout's entropy, while the run's own controller has observed all rollouts so far.",
        ).draw()[:MOST]
    with right:
        measure = MEASURE.draw()
    named = [(f"run: {update.config.controller}", tokens)]
    for name in names:
        try:
            named.append((name, token_plans.tokens_under(name, update, target)))
        except ValueError as error:
            st.error(f"{name}: {error}")
    frame = token_plans.compared(named, measure, exact=exact)
    title = f"{measure} (mnats)" if measure == "entropy change" else measure
    picture = quadrant_pictures.comparison_picture(frame, measure, title)
    words = told_controllers(named, exact)
    charts.show(picture, key="controllers")
    st.info(words, icon=":material/visibility:")
    number = st.column_config.NumberColumn(format="%.1f" if measure == "entropy change" else "%.3f")
    st.dataframe(
        token_plans.wide(frame, measure),
        hide_index=True,
        column_config=dict.fromkeys(("I", "II", "III", "IV", "sum"), number),
    )
    exports.draw(picture, "quadrants-controllers", [])


def told_controllers(named: Sequence[tuple[str, RolloutTokens]], exact: bool) -> str:
    """Return the controllers that lower and raise the entropy most, and the run's largest quadrant, in words."""
    sums = {name: 1000 * float(tokens.planned.mean()) for name, tokens in named}
    low, high = min(sums, key=sums.__getitem__), max(sums, key=sums.__getitem__)
    run, tokens = named[0]
    parts = {name: 1000 * part.change for name, part in by_quadrant(tokens, exact=exact).items()}
    largest = max(parts, key=lambda name: abs(parts[name]))
    text = (
        f"To first order, this update of the run changes the mean entropy by {sums[run]:+z.1f} thousandths of a nat at "
        f"learning rate 1; quadrant {largest} contributes {parts[largest]:+z.1f}."
    )
    if len(named) == 1 or sums[high] - sums[low] < 0.05:
        return text
    return (
        f"{text} On the same tokens, the change is highest under {high} ({sums[high]:+z.1f}) and lowest under {low} "
        f"({sums[low]:+z.1f})."
    )
