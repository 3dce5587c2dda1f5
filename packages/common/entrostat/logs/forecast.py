"""File of a forecast beside its run: `toybandit forecast` writes it, `llmtrain diagnose` shows it."""

import json
from pathlib import Path
from typing import Any

SHOWN = 3
"""Rules that are shown."""


def beside(run: str | Path) -> Path:
    """Return the path of a run's forecast: in the folder of a run, else beside the log."""
    path = Path(run)
    return path / "forecast.json" if path.is_dir() else path.with_name(f"{path.name}.forecast.json")


def told(run: str | Path) -> str:
    """Return the forecast beside a run in a few lines; "" if there is none."""
    path = beside(run)
    if not path.is_file():
        return ""
    made = json.loads(path.read_text(encoding="utf-8"))
    k, rules = made["k"], made["rules"]
    best = sorted((rule for rule in rules if apart(rule["pass"])), key=lambda rule: -rule["pass"][1])[:SHOWN]
    lines = [
        f"Forecast, which is no evidence: from {made['steps']} steps of plain GRPO, expected after {made['total']}"
    ]
    for rule in best:
        reward, passed = (f"{rule[name][1]:+.3f} ±{rule[name][2]:.3f}" for name in ("reward", "pass"))
        lines.append(f"  {rule['rule']}: held-out pass@{k} {passed}, reward {reward}, against GRPO")
    if not best:
        lines.append(f"  no rule's pass@{k} is told apart from GRPO's")
    return "\n".join([*lines, *(f"  {note}" for note in made["notes"])])


def apart(result: list[Any]) -> bool:
    """Return True if a result (value, difference from GRPO, end of its interval) is above GRPO's."""
    return bool(result[1] > result[2])
