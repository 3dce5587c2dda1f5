"""Quadrants: the direction in which tokens move the entropy, and the effect of controllers on them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from toybandit import Config
from toybandit.rollout_tokens import RolloutTokens, Update, by_quadrant
from toybandit.token_surface import FORMULAS

from ...shared import bandit, charts, exports, presets, simulations
from ...shared.beside import beside
from ...shared.controls import Control
from ...shared.room import room
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
MOMENT = Control(
    key="q.t", label="Moment", symbol="t", unit="rollout", default=10, low=0, help="Rollout whose tokens are shown."
)
UPDATE = Control(
    key="q.update",
    label="Update",
    default=LAST,
    options=(FIRST, LAST),
    help="In the first update the policy still equals the one that sampled, so nothing is clipped. In the last update "
    "it differs.",
)
CUT = Control(
    key="q.cut",
    label="Likely above",
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


def page() -> None:
    """Draw the surface with a run's tokens, the tokens in their quadrants, and other controllers on these tokens."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Quadrants", width="content")
        presets.draw_links("quadrants")
    st.fragment(draw_quadrants)()


def draw_quadrants() -> None:
    """Draw the controls of a run, and beside them its tokens."""
    panel, stage = beside()
    with panel:
        controller = bandit.draw_controller()
        environment = bandit.draw_environment()
        seed = bandit.SEED.draw()
    with stage:
        try:
            config = bandit.config(environment, controller)
        except ValueError as error:
            st.error(str(error))
            return
        draw_run(config, seed, controller.get("target"))


def draw_run(config: Config, seed: int, target: float | None) -> None:
    """Draw the tokens of a moment of a run. target: nats, for other controllers that have one."""
    moment, number, exact, formula, axis = draw_moment(config)
    left, right = st.columns(2, gap="medium")
    with left:
        surface = room("surface", quadrant_pictures.HEIGHT)
    with right:
        points = room("tokens", quadrant_pictures.HEIGHT)
    tokens, update = None, None
    try:
        with points:
            update = update_or_ask(config, seed, moment, number)
        tokens = None if update is None else token_plans.tokens_of(update)
    except ValueError as error:
        st.error(str(error))
    with surface:
        draw_surface(formula, tokens)
    if update is not None and tokens is not None:
        with points:
            draw_tokens(tokens, exact, axis)
        draw_controllers(update, tokens, exact, target)


def draw_moment(config: Config) -> tuple[int, int, bool, str, str]:
    """Draw the controls of the moment and of the pictures.

    Return the rollout, the index of its update, True if p* is the boundary, the formula and the horizontal axis.
    """
    last = config.environment().rollouts - 1
    if st.session_state.get("q.t", 0) > last:
        st.session_state["q.t"] = last
    moment = replace(MOMENT, default=min(MOMENT.default, last), high=last)
    values = []
    for column, control in zip(st.columns(5, gap="small"), (moment, UPDATE, CUT, FORMULA, AXIS), strict=True):
        with column:
            values.append(control.draw())
    rollout, update, cut, formula, axis = values
    return rollout, 0 if update == FIRST else -1, cut == EXACT, formula, axis


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


def draw_surface(formula: str, tokens: RolloutTokens | None) -> None:
    """Draw the entropy change over p and H, with the tokens of the run."""
    arms = Config().environment().arms
    picture = quadrant_pictures.surface_picture(formula, arms, tokens)
    words = told_surface(formula, tokens)
    charts.show(picture, key="surface")
    st.caption(words)
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


def draw_tokens(tokens: RolloutTokens, exact: bool, axis: str) -> None:
    """Draw the tokens in their quadrants."""
    words = told_tokens(tokens, exact)
    if not (tokens.advantage != 0).any():
        st.info(words, icon=":material/visibility:")
        return
    picture = quadrant_pictures.token_picture(tokens, exact=exact, axis=axis)
    charts.show(picture, key="tokens")
    st.caption(
        f"{words} Larger tokens have more weight. Hollow ones get no gradient: they are clipped, or dropped by the "
        "controller."
    )
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
