"""Effect of every surrogate and controller on the entropy in the simulator, with default settings.

    python benchmarks/measure_controllers.py [--out docs/data/measured.json] [--seeds 4]
    python benchmarks/measure_controllers.py --only steer thermostat       keep the other results

Environment `noisy` with 48 states and 150 rollouts; closed loops have the target .6. Writes the mean entropy over
states and runs before the first and after the last rollout, and the mean expected reward of the last rollout's policy,
at temperature 1.
`python -m entrostat docs` reads the file. The numbers are the same on every machine up to rounding.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

from entrostat import CompositionWarning
from entrostat.about.description import describe, names
from toybandit import Config, simulate
from toybandit.frontier import mean_entropy

STATES, ROLLOUTS, TARGET = 48, 150, 0.6


def measure(name: str, seeds: int) -> dict[str, object]:
    """Return entropy at start and end (nats) and final reward of one controller."""
    kind = "surrogate" if name in names("surrogate") else "controller"
    target = TARGET if "target" in describe(name, kind)["hyperparameters"] else None
    config = Config(env="noisy", controller=name, target=target, states=STATES, rollouts=ROLLOUTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompositionWarning)  # also rules for one pass run with eight, on purpose
        run = simulate(config, range(seeds))
    last, reward = run.entropy[:, -1], run.reward
    if "temperature" in run.metrics:  # of the policy itself, not of its samples
        last, reward = mean_entropy(run.probabilities), run.metrics["reward/at_1"]
    entropy = [round(float(values.mean()), 4) for values in (run.entropy[:, 0], last)]
    return {"entropy": entropy, "reward": round(float(reward[:, -1].mean()), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/data/measured.json"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measure only these; keep the other results in --out")
    given = parser.parse_args()
    known = sorted((*names("surrogate"), *names("controller")))
    if given.only and (unknown := set(given.only) - set(known)):
        parser.error(f"unknown {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    results = json.loads(given.out.read_text())["results"] if given.only else {}
    for name in given.only or known:
        start = time.perf_counter()
        results[name] = measure(name, given.seeds)
        print(f"{name:24} {results[name]}  {time.perf_counter() - start:.1f} s", flush=True)
    setting = (
        f"environment noisy (8 passes over each rollout), {STATES} states, {ROLLOUTS} rollouts, {given.seeds} seeds, "
        f"defaults, target {TARGET} for closed loops; mean entropy before the first and after the last rollout (nats), "
        "expected reward of the last policy. `ppo` is GRPO."
    )
    given.out.write_text(json.dumps({"setting": setting, "results": dict(sorted(results.items()))}, indent=1) + "\n")


if __name__ == "__main__":
    main()
