"""Closed loops whose measurement of the entropy is some rollouts old."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from entrostat import Chain, StepStats
from entrostat.controllers.thermostat import Thermostat

from .checks import Values, above, below, every, numbers_of, settle, told
from .feedback import GOAL
from .holding import HOLDERS
from .live_case import Live, within
from .memory import remember
from .mutations import OFF, Change, Mutation, Swap, always, negated
from .registry import HOLDS, Effort, Finding, claim
from .runs import entropies

SHORT, LONG = 2, 8
"""Delays, in rollouts."""
SWING = 0.1
"""Largest deviation from the target that counts as holding it, nats: a sixth of the target."""
BY_STEPS = ("adaptive entropy", "adaptive clip", "STARE")
"""Loops whose knob moves by a small fixed step in the direction of the error."""
BY_ERROR = ("EntroPIC",)
"""Loops whose answer grows with the error, and who do not know that it is old."""
HOLDING = (*BY_STEPS, "thermostat")
"""Loops that hold their target with a reading of LONG rollouts before."""
LOOPS: dict[str, dict[str, Any]] = {
    **{name: HOLDERS[name] for name in (*BY_STEPS, "Pos-Adv-Reweight", "thermostat")},
    "EntroPIC": {"controller": "entropic", "controller_args": {"kp": 4.0, "ki": 0.05, "tau": 0.5}},
}
"""Settings of the loops."""


def delayed(rollouts: int) -> Change:
    """Return the change of `Chain.observe` to one that gets the entropy of so many rollouts before, or the first."""

    def change(observe: Callable[[Chain, StepStats], None]) -> Callable[[Chain, StepStats], None]:
        waiting: deque[Any] = deque(maxlen=rollouts + 1)

        def changed(self: Chain, stats: StepStats) -> None:
            waiting.append(stats.entropy)
            observe(self, replace(stats, entropy=waiting[0], delay=None))

        return changed

    return change


@remember
def swing(effort: Effort, name: str, delay: int) -> Values:
    """Return the root mean square of H − target over the last fifth of each run, (runs,), nats."""
    with Swap(Chain, "observe", delayed(delay))():
        entropy = entropies(effort, env="noisy", target=GOAL, **LOOPS[name])
    last = entropy[:, -(entropy.shape[-1] // 5) :] - GOAL
    found: Values = np.sqrt((last**2).mean(-1))
    return found


@claim(
    "delayed-loops",
    paper="Ours",
    source="ours, not found elsewhere; delays as by `rollout.partial_tokens` and `topology.staleness` of llmtrain",
    words=f"closed loops hold their target with a measurement of the entropy that is {SHORT} rollouts old; one "
    f"that is {LONG} rollouts old makes EntroPIC swing, whose answer grows with the error, not adaptive entropy, "
    "adaptive clip and STARE, which move by small fixed steps, and not thermostat, which finds the delay",
    statement=(r"\text{loops that see } H_{t-k}:", r"k = 2 \ \Rightarrow\ \sqrt{\langle (H_t - H^*)^2 \rangle} < 0.1"),
    assumption=f"noisy, target .6, measurements {SHORT} and {LONG} rollouts old, samples of the policy itself",
    threshold=f"root mean square of H − target over the last fifth of the runs below {SWING:g} nats, a sixth of the "
    f"target, at {SHORT} rollouts, and at {LONG} for thermostat and the three with fixed steps; above it at {LONG} for "
    "EntroPIC",
    null="the same loops without a delay",
    expected=HOLDS,
    mutations=(
        Mutation("nothing were delayed", Swap(__name__, "delayed", lambda change: lambda rollouts: change(0))),
        Mutation(
            "the steps of adaptive entropy were ten times as large",
            Swap(
                LOOPS,
                "adaptive entropy",
                always({"controller": "adaptive_entropy", "controller_args": {"delta": 0.05, "coef_max": 1.0}}),
            ),
        ),
        Mutation(
            "the thermostat took old readings for new ones",
            Swap(LOOPS, "thermostat", always({"controller": "thermostat", "controller_args": {"delay": 0}})),
        ),
        Mutation("the thermostat's wanted flow had the other sign", Swap(Thermostat, "wanted_flow", negated)),
        Mutation("the thermostat were switched off", Swap(Thermostat, "transform", OFF)),
    ),
    live=Live("delayed-loop", turned={"loop": "EntroPIC", "delay": 8}, conditions=(within("delay", high=2),)),
)
def delayed_loops(effort: Effort) -> Finding:
    """A loop that answers an old error in full answers it again in every rollout until it sees what it has done. The
    thermostat follows a plant of each delay up to 16, uses the one that explains the readings best, and counts what it
    has planned since; told that nothing is late, it swings most. Pos-Adv-Reweight has steps too large for a measurement
    of that age, and swings a little. llmtrain measures the entropy of old tokens under the present policy, so stale
    rollouts do not delay its loops."""
    found = {delay: {name: swing(effort, name, delay) for name in LOOPS} for delay in (0, SHORT, LONG)}

    def said(delay: int) -> str:
        return ", ".join(f"{name} {told(values)}" for name, values in found[delay].items())

    return Finding(
        "; ".join(f"{delay} rollouts old: {said(delay)}" for delay in (SHORT, LONG)),
        numbers_of({f"{name}, {delay}": found[delay][name] for delay in (SHORT, LONG) for name in LOOPS}),
        *settle(
            every(below(values, SWING) for values in found[SHORT].values())
            & every(below(found[LONG][name], SWING) for name in HOLDING)
            & every(above(found[LONG][name], SWING) for name in BY_ERROR)
        ),
        null=said(0),
    )
