"""Entropy by the size of the data set and by the similarity of its prompts."""

from dataclasses import replace

import numpy as np

from ..claims.data_diversity import LEAST, PROMPTS, ROLLOUTS, SHARED, similar
from ..claims.registry import Effort
from ..claims.runs import entropies
from ..trial import Outcome, Parameter, trial
from .rules import PASSES

SIZE = Effort(instances=8, runs=2, states=PROMPTS, rollouts=ROLLOUTS)


@trial(
    "data-diversity",
    Parameter(
        key="shared",
        label="Share of an update that similar prompts get",
        default=SHARED,
        low=0.0,
        high=1.0,
        step=0.05,
        help="64 prompts in 8 groups; those of a group have the same start and the same right arms. 0: unconnected.",
    ),
    Parameter(
        key="often",
        label="Uses of a prompt of the small set",
        default=4,
        low=1,
        high=8,
        step=1,
        help="Relative to the set of 64 prompts, with as many uses in all: 4 stands for 16 prompts.",
    ),
    replace(PASSES, default=1),
)
def data_diversity(shared: float, often: int, passes: int) -> Outcome:
    """Final entropy with 64 unlike prompts, with fewer prompts used more often, and with similar prompts, unconnected
    and connected. The prediction has the small set below the large one, and connected prompts below unconnected ones.
    """
    env = "on" if passes == 1 else "noisy"
    sizes = (PROMPTS, PROMPTS // often)
    large, small = (
        float(entropies(SIZE, env=env, states=n, rollouts=PROMPTS * ROLLOUTS // n, passes=passes)[:, -1].mean())
        for n in sizes
    )
    apart, together = (float(similar(SIZE, env, x, passes=passes).mean()) for x in (0.0, shared))
    measured = np.array([large, small, apart, together])
    return Outcome(
        x=np.arange(4, dtype=np.float64),
        x_title="data set",
        names=(f"{PROMPTS} prompts", f"{sizes[1]} prompts", "similar, unconnected", "similar"),
        predicted=np.array([large, min(small, large), apart, min(together, apart - LEAST)]),
        measured=measured,
        y_title="final entropy H (nats)",
        holds=bool(small < large and together <= apart - LEAST),
        because=f"{sizes[1]} prompts end at {small:.3f} and {PROMPTS} at {large:.3f}; similar prompts end at "
        f"{together:.3f}, unconnected ones at {apart:.3f}. The claim is less entropy with fewer and with similar "
        "prompts.",
    )
