"""States worth seeing: each a page, its query parameters and what to notice there. Links, tour and tests use these."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from ..menu import streamlit_page
from .controls import in_state, query, restore


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A page in a state."""

    title: str
    notice: str
    """What to look at, and why it is so."""
    page: str = "playground"
    """Its path."""
    query: Mapping[str, Any] = field(default_factory=dict)
    """Values of controls that differ from their defaults, by key."""


PRESETS: dict[str, Preset] = {
    "collapse": Preset(
        title="Collapse",
        notice="Plain GRPO. Likely arms that pay are made likelier still, so entropy falls fastest at first and then "
        "stays low: the policy no longer tries anything else. The third picture foretells each fall from the "
        "covariance of log-probability and step.",
    ),
    "clip-higher": Preset(
        title="Why clip-higher helps",
        query={"controller": ("clip_higher",), "passes": 8, "states": 8, "rollouts": 60},
        notice="The upper clip bound stops unlikely arms from growing on re-used samples. Raised to .28 it lets them "
        "grow a little further, and these are the arms whose growth raises entropy. Take clip_higher away to compare.",
    ),
    "positives-only": Preset(
        title="Positives only",
        query={"controller": ("positive_only",)},
        notice="Only responses better than their group are learnt from. What the policy already likes is reinforced "
        "most often, and nothing pushes back: entropy collapses fastest of all.",
    ),
    "negatives-only": Preset(
        title="Negatives only",
        query={"controller": ("negative_only",)},
        notice="Only responses worse than their group are learnt from. Probability is taken from what was tried and "
        "spread over everything else, so entropy stays higher, at the price of a slower rise of the reward.",
    ),
    "thermostat": Preset(
        title="A thermostat holds the target",
        query={"controller": ("thermostat",), "target": 0.8, "rollouts": 80},
        notice="The thermostat solves for the coefficient that makes the predicted entropy change what is missing to "
        "the target. Nothing is tuned.",
    ),
    "p-control": Preset(
        title="P control leaves an error",
        query={"controller": ("entropic",), "target": 0.8, "rollouts": 80, "entropic.tau": 0.0, "entropic.ki": 0.0},
        notice="P control pushes in proportion to the error, so it only pushes while there is one. Training drags the "
        "entropy down all the time; entropy rests where push and drag are equal, below the target.",
    ),
    "pi-control": Preset(
        title="PI control leaves none",
        query={
            "controller": ("entropic",),
            "target": 0.8,
            "rollouts": 120,
            "entropic.tau": 0.0,
            "entropic.ki": 0.1,
        },
        notice="The integral part sums the errors up and goes on pushing until they are gone: after an undershoot the "
        "entropy comes back to the target and stays.",
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
        notice="The run starts far above the target. α is at its bound, but the sum of errors goes on growing, and has "
        "to be paid back: entropy falls far below the target first. Switch anti_windup on to compare.",
    ),
    "no-authority": Preset(
        title="A controller without authority",
        query={
            "controller": ("entropic",),
            "env": "on",
            "passes": 1,
            "lr": 2.0,
            "rollouts": 120,
            "target": 0.8,
            "entropic.tau": 0.0,
        },
        notice="Strictly on-policy and with binary rewards, weights that depend on the sign of the advantage alone "
        "cannot turn the expected step. Entropy falls through the target while α runs to its bound.",
    ),
    "no-signal": Preset(
        title="No signal at all",
        query={"env": "pure"},
        notice="Every arm pays alike. There is nothing to learn, and entropy still falls: noise alone makes the policy "
        "surer of itself.",
    ),
    "deterministic": Preset(
        title="When groups agree",
        query={"env": "det"},
        notice="Rewards without noise are learnt from at once, so entropy falls about twice as fast as under noisy "
        "ones. Then whole groups agree, their advantages become 0, and the run comes to a halt.",
    ),
    "high-gain": Preset(
        title="Too high a gain",
        page="control-room",
        query={"pi.kp": 20.5},
        notice="Each step takes back more than twice the error.",
    ),
    "p-rest": Preset(
        title="P control leaves an error",
        page="control-room",
        query={"pi.ki": 0.0, "pi.section": "Bandit"},
        notice="Without a sum of errors only an error can push against the drift.",
    ),
    "loop-windup": Preset(
        title="Windup",
        page="control-room",
        query={"pi.alpha_max": 0.6, "pi.error": 1.0, "pi.ki": 0.5, "pi.anti_windup": False, "pi.section": "Windup"},
        notice="α stands at its bound for long, and the sum grows all the while.",
    ),
    "no-grip": Preset(
        title="No grip",
        page="control-room",
        query={"pi.tau": 0.0, "pi.section": "Bandit"},
        notice="Weights by the sign of A on all tokens cannot turn an on-policy step.",
    ),
    "self-tuning": Preset(
        title="Gains that set themselves",
        page="control-room",
        query={"pi.env": "noisy", "pi.target": 0.6, "pi.section": "Auto-tuning"},
        notice="The plant is estimated while it is controlled.",
    ),
    "wrong-side": Preset(
        title="Tokens on the wrong side",
        page="quadrants",
        query={"q.t": 5, "q.update": "first"},
        notice="Some rewarded tokens are likelier than e^(−H), and still raise the entropy.",
    ),
    "clipped": Preset(
        title="What clipping stops",
        page="quadrants",
        query={"passes": 8, "q.measure": "kept share"},
        notice="After some updates the ratio clip stops the unlikely tokens first.",
    ),
    "clip-family": Preset(
        title="Four ways to clip",
        page="compare",
        query={"contenders": ("grpo", "clip_higher", "clip_lower", "clip_free"), "passes": 4},
        notice="The same bandits under other clip bounds.",
    ),
    "holders-det": Preset(
        title="Deterministic rewards",
        page="compare",
        query={"env": "det"},
        notice="Groups soon agree, and their advantages vanish.",
    ),
    "uncentred": Preset(
        title="Advantages off zero",
        page="theorems",
        query={"claim": "thm1-centred", "thm1-centred.shift": 0.5},
        notice="Theorem 1 of the Entropy Mechanism needs a mean advantage of zero.",
    ),
    "boundary": Preset(
        title="A boundary in the wrong place",
        page="theorems",
        query={"claim": "steer-sign"},
        notice="The sign of a token's entropy change does not turn at e^(−H).",
    ),
    "bounded-sum": Preset(
        title="Windup, by measurement",
        page="theorems",
        query={"claim": "windup", "windup.anti_windup": False},
        notice="The released code lets the sum of errors grow while α is at its bound.",
    ),
    "quantile-unclipped": Preset(
        title="A lever that needs a clip",
        page="theorems",
        query={"claim": "qae-quantile", "qae-quantile.clip": False},
        notice="Without the ratio clip the K of a quantile baseline hardly moves the entropy.",
    ),
    "negative-quadrants": Preset(
        title="Negatives only",
        page="quadrants",
        query={"controller": ("negative_only",), "q.measure": "entropy change"},
        notice="Only quadrants III and IV are left, and IV raises the entropy.",
    ),
}


def draw_links(page: str) -> None:
    """Buttons that bring the page into the state of a preset, or back to its first one."""
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
    """A link to a preset on another page."""
    st.page_link(streamlit_page(preset.page), label=label or preset.title, query_params=query(preset.query))


def current(page: str) -> Preset | None:
    """The preset whose state the page's controls are in."""
    return next((p for p in PRESETS.values() if p.page == page and in_state(p.query, except_for=TRANSIENT)), None)


TRANSIENT = ("t", "state")
"""Controls that say what of a state is looked at."""
