"""Page of the leaderboard, in Markdown."""

from collections.abc import Mapping, Sequence

import numpy as np

from entrostat.about.lineup import ALONE, LEFT_OUT
from entrostat.about.titled_points import markdown

from ..config import Config
from ..environments import Environment
from ..sweep.measure import SETTLED
from .cells import TARGET
from .standings import LEVEL, Estimate, Standing

HEADER = ("controller", "values", "entropy", "target error", "reward", "gap", "settling", "notes")


def page(panels: Mapping[str, Sequence[Standing]], configs: Mapping[str, Config], *, seeds: int, picture: str) -> str:
    """Return the whole page from standings and configurations by environment; picture: path relative to the page."""
    environments = {env: config.environment() for env, config in configs.items()}
    sections = [_section(env, environments[env], standings) for env, standings in panels.items()]
    introduction = _introduction(next(iter(environments.values())), seeds, picture)
    return "\n\n".join([introduction, _holding(panels), *sections]) + "\n"


def _introduction(environment: Environment, seeds: int, picture: str) -> str:
    arms = environment.right_arms
    flat = np.log(arms)
    return f"""# Leaderboard

Every controller but `{LEFT_OUT}`, which needs rollouts of another policy, with the values of its preset
`paper`. Some also have a row with other values, named in the second column: rates and shares that act within
{environment.rollouts} rollouts, a variant of the rule, or another advantage than {environment.advantage}. \
{environment.states} states, {environment.arms} arms, groups of {environment.group}, and the same {seeds} seeds
for all. Controllers with a target aim at {TARGET:g} nats.

    toybandit leaderboard --page docs/leaderboard.md

{markdown("Reward against entropy with the frontier", picture)}

*Named: the five entries with the highest reward, and GRPO. Grey: the others. Open the picture to see each one's
name and numbers under the pointer; [Compare](app.md#compare) in the explorer draws any eight of them.*

| column | meaning |
|---|---|
| entropy, reward | of the final policy: mean entropy over states (nats), expected reward |
| target error | distance of the mean entropy over the last third of the rollouts (of the samples) from the target |
| gap | highest reward of any policy with the same entropy, minus the reward |
| settling | rollouts until the entropy stays within ±{SETTLED:g} of the target to the end, median over seeds |

Brackets are {LEVEL:.0%} percentile bootstrap intervals over the {seeds} seeds; rows whose intervals overlap may change
places with other seeds. A state has {arms} equally good arms, so the
frontier is flat up to log {arms} = {flat:.3f} nats: below that, entropy costs no reward, and the whole gap
is reward that has not been learnt."""


def _holding(panels: Mapping[str, Sequence[Standing]]) -> str:
    """Return the target errors of all environments in one table, smallest worst case first."""
    errors: dict[tuple[str, str], dict[str, Estimate]] = {}
    for env, standings in panels.items():
        for s in standings:
            if s.target_error is not None:
                errors.setdefault((s.entry.controller, s.entry.setting), {})[env] = s.target_error
    worst = sorted(errors.items(), key=lambda item: max(error.value for error in item[1].values()))
    about = "Target error; the smallest worst case first."
    if worst:
        first, *others = (max(found.values()) for _, found in worst)
        about += "\n" + _first("worst case", [other.low <= first.high for other in others])
    lines = ["## Holding the target", "", about, ""]
    lines += ["| " + " | ".join(("controller", "values", *panels)) + " |", "|" + "---|" * (2 + len(panels))]
    for (controller, setting), found in worst:
        cells = (number(found.get(env), 4) for env in panels)
        lines.append("| " + " | ".join((f"`{controller}`", setting, *cells)) + " |")
    return "\n".join(lines)


def _section(env: str, environment: Environment, standings: Sequence[Standing]) -> str:
    failed = [standing for standing in standings if standing.error]
    about = (
        f"Rewards {environment.reward_right:g} and {environment.reward_wrong:g}, passes over a rollout "
        f"{environment.passes}, learning rate {environment.lr}, coupling of states {environment.coupling:g}. "
        "Highest reward first."
    )
    rewards = [standing.reward for standing in standings if standing.reward]
    if rewards:
        about += "\n" + _first("reward", [other.high >= rewards[0].low for other in rewards[1:]])
    lines = [f"## {env}", "", about, "", "| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += [_row(standing) for standing in standings if not standing.error]
    if failed:
        lines += ["", "Could not run:", "", *(f"- `{standing.entry.name}`: {standing.error}" for standing in failed)]
    return "\n".join(lines)


def _first(what: str, others: Sequence[bool]) -> str:
    """Return the sentence on the first row of a table; others: True where a later row's interval overlaps with its."""
    count = sum(others)
    if not count:
        return f"The interval of the first row's {what} overlaps with none of the other {len(others)}."
    return f"The interval of the first row's {what} overlaps with {count} of the other {len(others)}; any may be first."


def _row(standing: Standing) -> str:
    numbers = (
        number(standing.entropy, 3),
        number(standing.target_error, 4),
        number(standing.reward, 4),
        number(standing.gap, 4),
        number(standing.settling, 0),
    )
    return (
        "| " + " | ".join((f"`{standing.entry.controller}`", standing.entry.setting, *numbers, notes(standing))) + " |"
    )


def notes(standing: Standing) -> str:
    """Return the notes of a row."""
    found = []
    if standing.entry.advantage in ALONE:
        found.append(ALONE[standing.entry.advantage])
    if standing.same_as:
        found.append(f"same numbers as `{standing.same_as}`")
    if standing.entry.per_response:
        found.append("acts on whole responses, here one token each")
    if standing.note:
        found.append(standing.note.partition(":")[0])
    return "; ".join(found)


def number(estimate: Estimate | None, digits: int) -> str:
    """Return an estimate with its interval as text, "never" for infinity, a dash for None."""
    if estimate is None:
        return "–"
    value, low, high = ("never" if np.isinf(x) else f"{x:.{digits}f}" for x in estimate)
    return value if low == high == value else f"{value} [{low}, {high}]"
