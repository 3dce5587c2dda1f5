"""Entropy errors and rewards of controllers with a target in the simulator.

    python benchmarks/thermostat.py [--seeds 16] [--envs noisy,on,pure,det,coupled] [--out docs/thermostat.json]

thermostat uses its defaults in all environments. The published controllers use their best settings: PI (`entropic`)
Kp = 1, Ki = .05 on all tokens, but strictly on-policy only on tokens with p > .5, because acting on all tokens has no
effect there; guided `positive_reweight` as published; `adaptive_entropy` with step .005 and ceiling .2 instead of the
published 1e-4 and .005, which are too small here.

First table: |mean entropy − target| over the last third of 300 rollouts, mean over seeds, and the mean expected reward
there. Second table: reward of thermostat minus the reward of a published controller if thermostat's target is, seed by
seed, the entropy that the other one reached; mean ± standard error over seeds (at least two).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from toybandit import Config, simulate

ENVS = ("noisy", "on", "pure", "det", "coupled")
TARGETS = (0.2, 0.6, 1.0, 1.4)
MODES = ("bonus", "reweight", "both")
PUBLISHED = ("PI", "guided reweighting", "adaptive entropy")


def controllers(env: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return controller and settings by name in the table."""
    return {
        "thermostat, bonus": ("thermostat", {"mode": "bonus"}),
        "thermostat, reweight": ("thermostat", {"mode": "reweight"}),
        "thermostat, both": ("thermostat", {"mode": "both"}),
        "PI": ("entropic", {"kp": 1.0, "ki": 0.05, "tau": 0.5 if env == "on" else 0.0}),
        "guided reweighting": ("positive_reweight", {"variant": "entropy_guided"}),
        "adaptive entropy": ("adaptive_entropy", {"delta": 0.005, "coef_max": 0.2}),
    }


def last_third(env: str, controller: str, settings: dict[str, Any], targets: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return mean entropy and reward over the last third, each with the shape of `targets`, (targets, seeds)."""
    seeds = list(range(targets.shape[1])) * targets.shape[0]
    given = {**settings, "target": targets.flatten().tolist()}
    run = simulate(Config(env=env, controller=controller, controller_args=given), seeds)
    third = run.reward.shape[1] // 3
    return tuple(x[:, -third:].mean(1).reshape(targets.shape) for x in (run.entropy, run.reward))


def measure(env: str, seeds: int) -> dict[str, Any]:
    """Return the numbers of both tables for one environment."""
    targets = np.repeat(np.array(TARGETS)[:, None], seeds, 1)
    held, found = {}, {}
    for name, (controller, settings) in controllers(env).items():
        entropy, reward = found[name] = last_third(env, controller, settings, targets)
        error = np.abs(entropy - targets)
        held[name] = {
            "error": error.mean(1).tolist(),
            "worst": error.max(1).tolist(),
            "reward": reward.mean(1).tolist(),
        }
    against = {}
    for name in PUBLISHED:
        entropy, reward = found[name]
        for mode in MODES:
            ours = last_third(env, "thermostat", {"mode": mode}, entropy)
            gain = ours[1] - reward
            against[f"{mode} − {name}"] = {
                "entropy": entropy.mean(1).tolist(),
                "missed": np.abs(ours[0] - entropy).mean(1).tolist(),
                "gain": gain.mean(1).tolist(),
                "standard error": (gain.std(1, ddof=1) / np.sqrt(seeds)).tolist(),
            }
    return {"held": held, "against": against}


def tables(results: dict[str, Any]) -> str:
    """Return both tables in Markdown."""
    lines = [
        "| env | controller | " + " | ".join(f"target {t}: error, reward" for t in TARGETS) + " |",
        "|---|---|" + "---|" * len(TARGETS),
    ]
    for env, result in results.items():
        for name, row in result["held"].items():
            cells = (f"{e:.4f}, {r:.4f}" for e, r in zip(row["error"], row["reward"], strict=True))
            lines.append(f"| {env} | {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| env | reward of | " + " | ".join(f"target {t}: entropy reached, difference" for t in TARGETS) + " |",
        "|---|---|" + "---|" * len(TARGETS),
    ]
    for env, result in results.items():
        for name, row in result["against"].items():
            numbers = zip(row["entropy"], row["gain"], row["standard error"], strict=True)
            cells = (f"{h:.3f}, {g:+.4f} ± {s:.4f}" for h, g, s in numbers)
            lines.append(f"| {env} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--envs", default=",".join(ENVS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results = {}
    for env in given.envs.split(","):
        results[env] = measure(env, given.seeds)
        print(tables({env: results[env]}), flush=True)
    print(f"\n{tables(results)}")
    if given.out:
        given.out.write_text(
            json.dumps({"targets": TARGETS, "seeds": given.seeds, "results": results}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
