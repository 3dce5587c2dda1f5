"""EntroPIC's PI control with self-tuned gains compared with the paper's fixed gains.

    python benchmarks/pi_control.py [--seeds 16] [--envs noisy,on,coupled] [--out docs/pi_control.json]

auto: `entropic(auto=True)`, the same in all environments. paper: Kp = 1, Ki = .01, tau = .95. By hand: Kp = 1, Ki = .05
and tau = 0 (.5 strictly on-policy). The last two rows force auto into settings in which α has little or no effect:
tau = 0 strictly on-policy, and tau above the probabilities at the target.

For each target: |mean entropy − target| over the last third of 300 rollouts (mean over seeds); settling time in
rollouts until |e| stays below .05 (median over seeds, or "never"); overshoot of the falling entropy below the target
(mean over seeds, nats).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from entrostat.numbers import pi_control
from toybandit import Config, simulate

ENVS = ("noisy", "on", "coupled")
TARGETS = (0.2, 0.6, 1.0, 1.4)
BAND = 0.05
"""Band of the settling time (nats)."""


def variants(env: str) -> dict[str, dict[str, Any]]:
    """Return the settings of `entropic` by name in the table."""
    return {
        "auto": {"auto": True},
        "paper": {"kp": 1.0, "ki": 0.01, "tau": 0.95},
        "by hand": {"kp": 1.0, "ki": 0.05, "tau": 0.5 if env == "on" else 0.0},
        "auto, tau = 0": {"auto": True, "auto_tau": False, "tau": 0.0},
        "auto, tau = .95": {"auto": True, "auto_tau": False, "tau": 0.95},
    }


def measure(env: str, settings: dict[str, Any], seeds: int) -> dict[str, list[float]]:
    """Return the numbers for each target."""
    targets = torch.tensor(TARGETS, dtype=torch.float64).repeat_interleave(seeds)
    given = {**settings, "target": targets.tolist()}
    run = simulate(Config(env=env, controller="entropic", controller_args=given), list(range(seeds)) * len(TARGETS))
    errors = torch.from_numpy(run.entropy) - targets.unsqueeze(-1)
    third = run.reward.shape[1] // 3

    def by_target(x: torch.Tensor) -> torch.Tensor:
        return x.double().reshape(len(TARGETS), seeds)

    return {
        "error": by_target(errors[:, -third:].mean(-1).abs()).mean(-1).tolist(),
        "settling": by_target(pi_control.settling_time(errors, BAND)).median(-1).values.tolist(),
        "overshoot": by_target(pi_control.overshoot(errors)).mean(-1).tolist(),
        "reward": by_target(torch.from_numpy(run.reward)[:, -third:].mean(-1)).mean(-1).tolist(),
    }


def table(results: dict[str, Any], rollouts: int = 300) -> str:
    """Return a Markdown table of error, settling time and overshoot."""
    lines = [
        "| env | gains | " + " | ".join(f"target {t}: error, settling, overshoot" for t in TARGETS) + " |",
        "|---|---|" + "---|" * len(TARGETS),
    ]
    for env, rows in results.items():
        for name, row in rows.items():
            numbers = zip(row["error"], row["settling"], row["overshoot"], strict=True)
            cells = (f"{e:.4f}, {'never' if s > rollouts else f'{s:.0f}'}, {o:.3f}" for e, s, o in numbers)
            lines.append(f"| {env} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--envs", default=",".join(ENVS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results = {
        env: {name: measure(env, settings, given.seeds) for name, settings in variants(env).items()}
        for env in given.envs.split(",")
    }
    print(table(results))
    if given.out:
        given.out.write_text(
            json.dumps({"targets": TARGETS, "seeds": given.seeds, "results": results}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
