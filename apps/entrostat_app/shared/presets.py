"""Presets: a page, values of its controls, and a note on what to look at. Links, tour and tests use them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from ..menu import streamlit_page
from .controls import in_state, query, restore


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Page with values of its controls."""

    title: str
    notice: str
    """Note on what to look at, with the reason."""
    page: str = "playground"
    """Path of the page."""
    query: Mapping[str, Any] = field(default_factory=dict)
    """Values of controls that differ from their defaults, by key."""


PRESETS: dict[str, Preset] = {
    "trap": Preset(
        title="The trap",
        query={"env": "trap", "lr": 2.0, "passes": 2, "rollouts": 260},
        notice="The likeliest arm pays half of the time, and GRPO settles for it. Another arm, which the first policy "
        "hardly ever draws, always pays: pass@64, the chance that one of 64 draws is that arm, falls to nearly 0. "
        "Choose thermostat and a target of 1.2 to compare.",
    ),
    "collapse": Preset(
        title="Collapse",
        notice="Plain GRPO. Likely arms that earn reward become even more likely, so entropy falls fastest at first "
        "and then stays low: the policy no longer tries anything else. The third picture predicts each fall from the "
        "covariance of log-probability and logit step.",
    ),
    "clip-higher": Preset(
        title="Why clip-higher helps",
        query={"controller": ("clip_higher",), "passes": 8, "states": 8, "rollouts": 60},
        notice="The upper clip bound stops the growth of unlikely arms on reused samples. At .28 it lets them grow a "
        "little further, and it is the growth of these arms that raises entropy. Remove clip_higher to compare.",
    ),
    "positives-only": Preset(
        title="Positives only",
        query={"controller": ("positive_only",)},
        notice="The update uses only responses better than their group. Likely arms are reinforced most often, and "
        "nothing pushes back: entropy collapses fastest.",
    ),
    "negatives-only": Preset(
        title="Negatives only",
        query={"controller": ("negative_only",)},
        notice="The update uses only responses worse than their group. Probability moves from the sampled arms to all "
        "others, so entropy stays higher, at the price of a slower rise in reward.",
    ),
    "thermostat": Preset(
        title="A thermostat holds the target",
        query={"controller": ("thermostat",), "target": 0.8, "rollouts": 80},
        notice="The thermostat solves for the coefficient whose predicted entropy change closes the gap to the target. "
        "Nothing is tuned.",
    ),
    "anneal": Preset(
        title="A target that falls",
        query={
            "controller": ("thermostat",),
            "schedule": "linear(1.4, 0.5, 60)",
            "thermostat.k": 0.5,
            "thermostat.rate": 0.1,
        },
        notice="The target falls from 1.4 to 0.5 nats over the run: the policy explores first and decides later. The "
        "thermostat removes the part k of the error in a rollout, so it follows at a distance of the target's fall per "
        "rollout divided by k. Lower k to see the distance grow.",
    ),
    "p-control": Preset(
        title="P control leaves an error",
        query={"controller": ("entropic",), "target": 0.8, "rollouts": 80, "entropic.tau": 0.0, "entropic.ki": 0.0},
        notice="P control acts in proportion to the error, so it acts only while there is an error. Training lowers "
        "the entropy all the time; the entropy settles where both effects cancel, below the target.",
    ),
    "pi-control": Preset(
        title="PI control removes the error",
        query={
            "controller": ("entropic",),
            "target": 0.8,
            "rollouts": 120,
            "entropic.tau": 0.0,
            "entropic.ki": 0.1,
        },
        notice="The integral part sums the errors and keeps acting until the error is gone: after an undershoot the "
        "entropy returns to the target and stays there.",
    ),
    "windup": Preset(
        title="Windup",
        query={
            "controller": ("entropic",),
            "target": 0.5,
            "rollouts": 120,
            "entropic.tau": 0.0,
            "entropic.ki": 0.3,
            "entropic.anti_windup": False,
        },
        notice="The run starts far above the target. α is at its bound, but the sum of errors keeps growing and must "
        "be undone later: entropy first falls far below the target. Switch anti_windup on to compare.",
    ),
    "no-authority": Preset(
        title="A controller without authority",
        query={
            "controller": ("entropic",),
            "env": "trap",
            "passes": 1,
            "lr": 4.0,
            "group": 32,
            "rollouts": 100,
            "target": 1.0,
            "entropic.tau": 0.0,
            "entropic.ki": 0.1,
        },
        notice="With on-policy samples and binary rewards, weights that depend only on the sign of the advantage "
        "cannot change the direction of the expected step. Entropy falls through the target while α runs to its bound.",
    ),
    "no-signal": Preset(
        title="No learning signal",
        query={"env": "pure"},
        notice="All arms have the same expected reward. There is nothing to learn, yet entropy falls: noise alone "
        "makes the policy more certain.",
    ),
    "deterministic": Preset(
        title="Groups with equal rewards",
        query={"env": "det"},
        notice="The policy learns fast from rewards without noise, so entropy falls about twice as fast as with noisy "
        "ones. Then all responses of a group earn the same reward, advantages become 0, and learning stops.",
    ),
    "held-out": Preset(
        title="What was not trained",
        query={"env": "features"},
        notice="Prompts share weights, so what is learnt reaches prompts that are never trained: one response is right "
        "more often there, too. But the policy becomes certain there as well, and eight responses find the answer "
        "less often than before. Choose thermostat and a target of 0.4 to compare.",
    ),
    "high-gain": Preset(
        title="Gain too high",
        page="control-room",
        query={"pi.kp": 20.5},
        notice="Each step corrects more than twice the error, so the error grows.",
    ),
    "p-rest": Preset(
        title="P control leaves an error",
        page="control-room",
        query={"pi.ki": 0.0, "pi.section": "Bandit"},
        notice="Without a sum of errors, only a remaining error can cancel the drift.",
    ),
    "loop-windup": Preset(
        title="Windup",
        page="control-room",
        query={"pi.alpha_max": 0.6, "pi.error": 1.0, "pi.ki": 0.5, "pi.anti_windup": False, "pi.section": "Windup"},
        notice="α stays at its bound for a long time while the sum of errors keeps growing.",
    ),
    "no-grip": Preset(
        title="No control authority",
        page="control-room",
        query={"pi.tau": 0.0, "pi.section": "Bandit"},
        notice="Weights by the sign of A on all tokens cannot change the direction of an on-policy step.",
    ),
    "self-tuning": Preset(
        title="Self-tuned gains",
        page="control-room",
        query={"pi.env": "noisy", "pi.target": 0.6, "pi.section": "Auto-tuning"},
        notice="The controller estimates the plant gain during the run.",
    ),
    "wrong-side": Preset(
        title="Tokens on the wrong side",
        page="quadrants",
        query={"q.t": 5, "q.update": "first"},
        notice="Some rewarded tokens are more likely than e^(−H) and still raise the entropy.",
    ),
    "clipped": Preset(
        title="Tokens stopped by clipping",
        page="quadrants",
        query={"passes": 8, "q.measure": "kept share"},
        notice="After a few updates, the ratio clip stops unlikely tokens first.",
    ),
    "clip-family": Preset(
        title="Four ways to clip",
        page="compare",
        query={"contenders": ("grpo", "clip_higher", "clip_lower", "clip_free"), "passes": 4},
        notice="The same bandits under different clip bounds.",
    ),
    "holders-det": Preset(
        title="Deterministic rewards",
        page="compare",
        query={"env": "det"},
        notice="Soon all responses of a group earn the same reward, and advantages become 0.",
    ),
    "held-out-holders": Preset(
        title="What was not trained",
        page="compare",
        query={"env": "features", "contenders": ("grpo", "clip_higher", "thermostat"), "target": 0.4},
        notice="GRPO is right more often with one response, and less often with eight.",
    ),
    "uncentred": Preset(
        title="Advantages with a nonzero mean",
        page="theorems",
        query={"claim": "thm1-centred", "thm1-centred.shift": 0.5},
        notice="Theorem 1 of the Entropy Mechanism needs a mean advantage of zero.",
    ),
    "boundary": Preset(
        title="A boundary in the wrong place",
        page="theorems",
        query={"claim": "opefo-sign"},
        notice="A token's entropy change does not switch sign at e^(−H).",
    ),
    "bounded-sum": Preset(
        title="Windup, measured",
        page="theorems",
        query={"claim": "windup", "windup.anti_windup": False},
        notice="The released code lets the sum of errors grow while α is at its bound.",
    ),
    "quantile-unclipped": Preset(
        title="A quantile that needs a clip",
        page="theorems",
        query={"claim": "qae-quantile", "qae-quantile.clip": False},
        notice="Without the ratio clip, the quantile K of the baseline hardly affects the entropy.",
    ),
    "negative-quadrants": Preset(
        title="Negatives only",
        page="quadrants",
        query={"controller": ("negative_only",), "q.measure": "entropy change"},
        notice="Only quadrants III and IV remain, and IV raises the entropy.",
    ),
}


def draw_links(page: str) -> None:
    """Draw buttons that set the page to a preset or back to its defaults."""
    with st.container(horizontal=True):
        with st.popover("Presets", icon=":material/bookmark:"):
            for name, preset in PRESETS.items():
                if preset.page == page:
                    st.button(
                        preset.title,
                        key=f"preset-{name}",
                        help=preset.notice,
                        on_click=restore,
                        args=(preset.query,),
                        width="stretch",
                    )
        st.button("Reset", icon=":material/restart_alt:", on_click=restore)


def link(preset: Preset, label: str | None = None) -> None:
    """Draw a link to a preset on another page."""
    st.page_link(streamlit_page(preset.page), label=label or preset.title, query_params=query(preset.query))


def current(page: str) -> Preset | None:
    """Return the preset that the page's controls match; None if they match none."""
    return next((p for p in PRESETS.values() if p.page == page and in_state(p.query, except_for=TRANSIENT)), None)


TRANSIENT = ("t", "state")
"""Controls that only select the moment and the state of the bandit that are shown."""
