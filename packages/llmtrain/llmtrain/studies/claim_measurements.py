"""Measurements for the claims: short runs, and tokens that are updated alone. Finished ones are read from their folder.

OUT/grpo/0, ...      runs by name and seed
OUT/tokens/0, ...    updates by one token of the first mini-batches, by seed
"""

import gzip
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..settings.config import TrainConfig
from ..settings.presets import get_preset
from .claim_registry import TOKENS, Measured, TokenSteps
from .compact_logs import short
from .comparison import Run
from .leaderboard_runs import done, ended, run_all
from .probe import ALL, OWN, pool

ROLLOUTS = 4
"""Rollouts whose first mini-batch is taken for each seed; SMALL leaves the policy nearly as it was."""
ALONE = 400
"""Tokens of a mini-batch that are updated alone, at most: nearly all, as unlikely tokens that succeed are rare."""
SMALL = 0.02
"""Share of the learning rate that makes the step of which a token's update is a part: nearly no curvature."""


def setting() -> TrainConfig:
    """Return the settings of a run: countdown-cpu, in 120 rollouts of half its prompts, with four updates on each."""
    base = get_preset("countdown-cpu")
    return replace(
        base,
        out="runs/claims",
        steps=120,
        save_every=60,
        rollout=replace(base.rollout, prompts=16),
        optim=replace(base.optim, mini_batch_size=4),
        eval=replace(base.eval, every=0),
        log=replace(base.log, tensorboard=False),
    )


def changes(base: TrainConfig) -> dict[str, dict[str, Any]]:
    """Return what each run changes in the settings, by its name."""
    controllers = ("positive_only", "negative_only", "clip_lower", "clip_higher", "clip_tighter", "clip_free")
    return {
        "grpo": {"steps": 2 * base.steps},
        "once": {"optim": replace(base.optim, mini_batch_size=base.rollout.prompts)},
        "short_steps": {"optim": replace(base.optim, lr=base.optim.lr / 4)},
        **{name: {"controller": name} for name in controllers},
    }


def configurations(base: TrainConfig, names: Collection[str], seeds: int) -> dict[str, list[TrainConfig]]:
    """Return the named runs, one for each seed; seeds change sampled responses and the order of the problems."""
    return {
        name: [replace(base, out=f"{base.out}/{name}/{seed}", seed=seed, **change) for seed in range(seeds)]
        for name, change in changes(base).items()
        if name in names
    }


def measure(base: TrainConfig, needs: Collection[str], seeds: int, workers: int = 1) -> Measured:
    """Return the measurements, and make those that are not in `base.out` yet. Raises ValueError if a run fails."""
    runs = configurations(base, needs, seeds)
    in_turn = [config for turn in zip(*runs.values(), strict=True) for config in turn]  # seed by seed
    if not all(ended(config) for config in in_turn):
        for out, error in run_all(in_turn, workers).items():
            raise ValueError(f"{out}: {error}")
    found = {name: [Run.read(config.out) for config in configs] for name, configs in runs.items()}

    def series(key: str) -> dict[str, Any]:
        return {name: np.array([run.series(key)[1] for run in of_seeds]) for name, of_seeds in found.items()}

    tokens = [token_steps(base, seed) for seed in range(seeds)] if TOKENS in needs else []
    return Measured(series("entropy"), series("reward"), tokens)


def token_steps(base: TrainConfig, seed: int) -> TokenSteps:
    """Return updates by one token in the first mini-batches of a run, measured or read from its folder."""
    optim = replace(base.optim, lr=SMALL * base.optim.lr)
    config = replace(base, out=f"{base.out}/{TOKENS}/{seed}", seed=seed, optim=optim)
    file = Path(config.out) / "tokens.json"
    done(config)
    if file.exists():
        return TokenSteps(*map(np.array, json.loads(file.read_text()).values()))
    from ..training.warmup import start_model
    from .probe_walk import Walk

    steps = range(min(ROLLOUTS, config.steps))
    walk = Walk(replace(config, overwrite=True), start_model(config), steps, sgd=True, alone=ALONE, first_order=True)
    probes = walk.walk()
    own, total = (pool([one for one in probes if one.optimizer == name]) for name in (OWN, ALL))
    found = TokenSteps(
        p=own.p,
        weight=own.weight,
        change=own.change,
        exact=own.estimates["exact flow"],
        own=own.estimates["own logit"],
        total=total.change,
        first_order=total.estimates["all weights"],
    )
    file.write_text(json.dumps(plain(found._asdict())))
    return found


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays as lists of numbers with DIGITS significant digits."""

    def shortened(x: Any) -> Any:
        return [shortened(one) for one in x] if isinstance(x, list) else short(x)

    return {name: shortened(np.asarray(x).tolist()) for name, x in values.items()}


def save(measured: Measured, path: Path) -> None:
    """Write the measurements as compressed JSON."""
    tokens: Sequence[Any] = [plain(one._asdict()) for one in measured.tokens]
    content = {"entropy": plain(measured.entropy), "reward": plain(measured.reward), TOKENS: tokens}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))


def load(path: Path) -> Measured:
    """Return measurements that `save` wrote."""
    content = json.loads(gzip.decompress(path.read_bytes()))

    def arrays(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: np.array(x) for name, x in values.items()}

    tokens = [TokenSteps(**arrays(one)) for one in content[TOKENS]]
    return Measured(arrays(content["entropy"]), arrays(content["reward"]), tokens)
