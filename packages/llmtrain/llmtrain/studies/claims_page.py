"""Page of the claims in a language model: one table of paper, bandit and language model, then each claim's numbers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from entrostat.about.claims import HOLDS, Record

from ..settings.config import TrainConfig
from . import claims_of_runs, claims_of_tokens  # noqa: F401 (they register the claims)

BANDIT = Path("docs/theory/claims.json")
"""Records that `toybandit verify --out docs` writes: the papers' words, the bandit's numbers and verdicts."""
MISSING, BAR = "–", r"\|"

INTRODUCTION = """# Claims in a language model

The claims of [the theory](theory.md) that can be asked in a language model, asked there: {model} on countdown,
{steps} rollouts of {prompts} × {n} responses (`grpo`: twice as many) with {updates} optimizer steps each, {epochs} for
each sample, learning rate {lr:g}, {seeds} seeds. Claims on single tokens update one token of the first mini-batch of a
rollout alone, by its part of a step of gradient descent that is {small:g} of the length of the run's own: up to {alone}
tokens in each of {rollouts} rollouts, for each seed.

A claim is a few differences that are positive if it is true. It *holds* if the 95% intervals of all of them (Student's
t over seeds) are above 0, *fails as stated* if one is below, and is *open* otherwise: with {seeds} seeds an interval is
{width:.1f} standard errors wide on each side, so an open verdict says that these runs are too few or too short.
Thresholds were set before the measurement. *With the fault* shows the verdict from the same numbers if what the claim
tests were broken in this way. ± is one standard error over seeds; entropies H are in nats, late H is the mean over the
last third of these rollouts.

    {command}

The numbers are in [claims.json]({folder}/claims.json) and the measurements in
[measured.json.gz]({folder}/measured.json.gz).
"""


def bandit_records(path: Path = BANDIT) -> dict[str, dict[str, Any]]:
    """Return the bandit's records by claim; empty if there is no file."""
    return {one["name"]: one for one in json.loads(path.read_text())} if path.exists() else {}


def line(record: Record) -> str:
    """Return a line on a claim for the terminal."""
    return f"{record.name:20} {record.verdict:16} {record.measured} (null: {record.measured_null})"


def summary(records: Sequence[Record]) -> str:
    """Return a sentence on all verdicts."""
    verdicts = [record.verdict for record in records]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    turned, faults = (sum(x) for x in zip(*map(noticed, records), strict=True))
    return f"{len(records)} claims: {counts}; {turned} of {faults} faults turn a verdict that holds"


def noticed(record: Record) -> tuple[int, int]:
    """Return how many faults turn the verdict, and how many there are; (0, 0) if it does not hold."""
    if record.verdict != HOLDS:
        return 0, 0
    return sum(verdict != HOLDS for verdict in (record.mutated or {}).values()), len(record.mutations)


def as_json(records: Sequence[Record]) -> str:
    """Return the records as a JSON list."""
    content = [
        {
            "name": record.name,
            "verdict": record.verdict,
            "measured": record.measured,
            "null": record.measured_null,
            "margins": {
                margin.name: {
                    "seeds": [float(f"{x:.6g}") for x in margin.values],
                    "mean": float(f"{margin.mean:.6g}"),
                    "interval": [float(f"{x:.6g}") for x in margin.interval],
                }
                for margin in record.margins
            },
            "mutated": record.mutated,
        }
        for record in records
    ]
    return json.dumps(content, indent=1, ensure_ascii=False)


def overview(records: Sequence[Record], bandit: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table: the paper's words, and verdict and number in the bandit and in the language model."""
    lines = ["| claim | paper | bandit | language model |", "|---|---|---|---|"]
    for record in records:
        known = bandit.get(record.name)
        cells = (
            f"[{record.name}](#{record.name.replace('.', '')})",
            f"{known['paper']}, {known['source']}: {known['words']}" if known else f"Ours: {record.meaning}",
            f"**{known['verdict']}**; {known['measured']}" if known else MISSING,
            f"**{record.verdict}**; {record.measured}",
        )
        lines.append(f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def entry(record: Record, known: Mapping[str, Any] | None) -> str:
    """Return the page's section on one claim."""
    lines = [f"## {record.name}", "", f"**{record.verdict[0].upper()}{record.verdict[1:]}.** {record.meaning}", ""]
    if known:
        lines.append(f"- **Claimed** ({known['paper']}, {known['source']}): {known['words']}")
    lines += [
        f"- **Threshold**: {record.threshold}",
        f"- **Null**: {record.null}",
        f"- **Measured**: {record.measured}; null: {record.measured_null}",
    ]
    if known:
        lines.append(f"- **Bandit**: {known['verdict']}; {known['measured']}")
    lines += ["", "| difference | mean | 95% interval |", "|---|---:|---:|"]
    for margin in record.margins:
        low, high = margin.interval
        lines.append(f"| {margin.name} | {margin.mean:+.4f} | {low:+.4f} to {high:+.4f} |")
    lines += ["", "| fault | with the fault |", "|---|---|"]
    lines += [f"| {name} | {verdict} |" for name, verdict in (record.mutated or {}).items()]
    return "\n".join(lines) + "\n"


def page(records: Sequence[Record], bandit: Mapping[str, Mapping[str, Any]], command: str, **told: Any) -> str:
    """Return the Markdown page. told: numbers of INTRODUCTION, see `settings_of`."""
    parts = [INTRODUCTION.format(command=command, **told), f"{summary(records)}.\n", overview(records, bandit)]
    return "\n".join([*parts, *(entry(record, bandit.get(record.name)) for record in records)])


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """Return what the page says about the settings."""
    return {
        "model": f"`{config.model.path}`" if config.model.path else "the demo's warm start",
        "steps": config.steps,
        "prompts": config.rollout.prompts,
        "n": config.rollout.n,
        "updates": config.updates,
        "epochs": config.optim.ppo_epochs,
        "lr": config.optim.lr,
    }
