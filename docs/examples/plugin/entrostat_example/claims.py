"""Claims of this plug-in, measured by `toybandit verify floor-helps`."""

from toybandit import Config, simulate
from toybandit.claims import HOLDS, Effort, Finding, Mutation, Swap, claim
from toybandit.claims.checks import above, numbers_of, settle, told

from .rules import Floor

OFF = Swap(Floor, "transform", lambda transform: lambda self, plan, context: plan)


@claim(
    "floor-helps",
    paper="docs/examples/plugin",
    source="rules.py",
    words="weights of wrong responses slow the fall of the entropy below the target",
    assumption="noisy, target .5",
    threshold="H after 100 rollouts above the null's, in paired runs",
    null="GRPO",
    expected=HOLDS,
    mutations=(Mutation("the rule did nothing", OFF),),
)
def floor_helps(effort: Effort) -> Finding:
    """Wrong responses that weigh more push their likely tokens down, which raises the entropy."""
    size = {"env": "noisy", "states": effort.states, "rollouts": 100}
    seeds = range(effort.runs)
    held = simulate(Config(controller="entrostat_example.rules:Floor", target=0.5, **size), seeds=seeds).entropy[:, -1]
    null = simulate(Config(controller="grpo", **size), seeds=seeds).entropy[:, -1]
    gain = held - null
    return Finding(f"H {told(held)}", numbers_of({"gain": gain}), *settle(above(gain)), null=f"H {told(null)}")
