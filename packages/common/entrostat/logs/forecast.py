"""File of a forecast beside its run: `toybandit forecast` writes it, `llmtrain diagnose` shows it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = "reward", "pass"
SHOWN = 3
"""Rules that are shown."""


def beside(run: str | Path) -> Path:
    """Return the path of a run's forecast: in the folder of a run, else beside the log."""
    path = Path(run)
    return path / "forecast.json" if path.is_dir() else path.with_name(f"{path.name}.forecast.json")


def read(path: Path) -> dict[str, Any]:
    """Return a stored forecast. Raises ValueError with the file's name if it is none."""
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
        return {
            "k": int(made["k"]),
            "steps": int(made["steps"]),
            "total": int(made["total"]),
            "like": bool(made.get("like", True)),
            "rules": [
                {"rule": str(r["rule"]), **{n: [float(x) for x in r[n]] for n in RESULTS}} for r in made["rules"]
            ],
            "notes": [str(note) for note in [*made["notes"]]],
        }
    except (ValueError, TypeError, LookupError, AttributeError):
        raise ValueError(f"{path} is no forecast of toybandit forecast: move it away") from None


def told(run: str | Path) -> str:
    """Return the forecast beside a run in a few lines, or what is wrong with the file; "" if there is none."""
    path = beside(run)
    if not path.is_file():
        return ""
    try:
        made = read(path)
    except ValueError as error:
        return str(error)
    above = [rule for rule in made["rules"] if made["like"] and apart(rule["pass"])]
    best = sorted(above, key=lambda rule: -rule["pass"][1])[:SHOWN]
    lines = [
        f"Forecast, which is no evidence: from {made['steps']} steps of plain GRPO, expected after {made['total']}"
    ]
    for rule in best:
        reward, passed = (f"{rule[name][1]:+.3f} ±{rule[name][2]:.3f}" for name in RESULTS)
        lines.append(f"  {rule['rule']}: held-out pass@{made['k']} {passed}, reward {reward}, against GRPO")
    if not best:
        lines.append(f"  no rule's pass@{made['k']} is told apart from GRPO's")
    return "\n".join([*lines, *(f"  {note}" for note in made["notes"])])


def apart(result: Sequence[float]) -> bool:
    """Return True if a result (value, difference from GRPO, half its interval) is above GRPO's."""
    _, gain, half = result
    return gain > half
