"""`toybandit run`: simulate one configuration and write its run log, arrays and figure."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite, log
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from entrostat.settings.commandline import parse_flags, parse_settings, writing
from entrostat.settings.out_folder import lock_folder
from entrostat.settings.schedules import schedule

from .config import Config
from .environments import Table
from .trajectory import Array, Trajectory, divergence, last_third
from .uncertainty import FACTOR, Measured, mean

DESCRIPTION = """Simulate a bandit under an entropy controller.

Example: toybandit run --env noisy --controller entropic --target 0.6 --set tau=0 --set ki=0.05

Writes a run log (config.yaml, manifest.json, metrics.jsonl), trajectory.npz with the numbers of every run, and
entropy.png. Numbers of the environment keep their values unless a flag sets them.

Unless the controller is grpo (or ppo, the same), plain grpo is simulated with the same seeds: entropy.png shows both,
and the output says what control cost in reward."""
PLAIN = "grpo"
"""Controller that others are compared with: plain clipping without entropy control."""
SAME = (PLAIN, "ppo")
"""Its names."""


@dataclass(frozen=True, kw_only=True)
class RunFlags(Config):
    """Flags of `toybandit run`."""

    preset: Annotated[Literal["paper", "released"], tyro.conf.Suppress] = "paper"
    controller_args: Annotated[Mapping[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    success: Annotated[Table | None, tyro.conf.Suppress] = None
    success_beta: Annotated[tuple[float, float] | None, tyro.conf.Suppress] = None
    logits: Annotated[Table | None, tyro.conf.Suppress] = None
    kernel: Annotated[Table | None, tyro.conf.Suppress] = None
    controller_preset: Literal["paper", "released"] = "paper"
    """Values of the controller's hyperparameters: paper (as published) or released (as in the authors' code)."""
    lr: float | None = None
    """Step on the mean gradient of a state."""
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set", metavar="KEY=VALUE"), tyro.conf.UseAppendAction] = ()
    """Hyperparameter of the controller, such as kp=1; may be repeated."""
    seeds: Annotated[int, "[1, 100000]"] = 8
    """Runs side by side, each with its own seed."""
    first_seed: int = 0
    """Seed of the first run; each further run adds 1."""
    diagnostics: bool = False
    """Also log token metrics (docs/metrics.md): quadrants, flows, clipping, weights. A few times slower."""
    out: Path | None = None
    """Output folder. Default: runs/ENV-CONTROLLER."""
    overwrite: bool = False
    """Overwrite an existing run."""
    beside: bool = True
    """Also simulate plain grpo with the same seeds, draw it in entropy.png, and print the difference in reward.
    --no-beside saves half of the time."""

    def __post_init__(self) -> None:
        """No-op: `config` builds and checks the configuration."""

    def config(self) -> Config:
        """Return the configuration to simulate."""
        given = {f.name: getattr(self, f.name) for f in fields(Config)}
        given |= {"preset": self.controller_preset, "controller_args": parse_settings(self.settings)}
        return Config(**given)


def run_command(args: Sequence[str]) -> int:
    """Simulate a bandit under an entropy controller."""
    renamed = [re.sub(r"^--preset(?==|$)", "--controller-preset", word) for word in args]
    flags = parse_flags(RunFlags, renamed, prog="toybandit run", description=DESCRIPTION)
    config = flags.config()
    out = flags.out or Path("runs") / f"{config.env}-{config.controller}"
    if (out / "checkpoints").exists():
        raise ValueError(f"{out} holds a training with checkpoints, which is never overwritten: choose another --out")
    if (out / "config.yaml").exists() and not flags.overwrite:
        raise ValueError(f"{out} holds a run: choose another --out, or pass --overwrite")
    from .simulator import simulate

    seeds = range(flags.first_seed, flags.first_seed + flags.seeds)
    # Try one rollout first: a configuration that cannot run should not leave a folder behind.
    tried = simulate(replace(config, rollouts=1), seeds, diagnostics=flags.diagnostics)
    _require_finite(tried.entropy[:, -1].mean(), 1)
    _require_reachable(config, float(tried.entropy[:, 0].mean()))
    with lock_folder(out), writing(out):
        record(config, seeds, out, flags.diagnostics, flags.beside)
    return 0


def _require_reachable(config: Config, first: float) -> None:
    """Raise ValueError if the target is above the entropy of the uniform policy at a rollout. first: entropy, nats."""
    if config.target is None:
        return
    from entrostat.controller import numbers_at

    environment, moving = config.environment(), schedule(config.target)
    arms, rollouts = environment.arms, environment.rollouts
    highest = max(float(numbers_at(moving, step, rollouts, first).max()) for step in range(rollouts))
    if highest > log(arms):
        told = f"{config.target} ({highest:.3f} nats)" if isinstance(config.target, str) else f"{config.target:g}"
        raise ValueError(f"target {told} exceeds {log(arms):.3f} nats, the greatest entropy of {arms} arms: lower it")


def record(config: Config, seeds: Sequence[int], out: Path, diagnostics: bool = False, beside: bool = False) -> None:
    """Simulate with a progress bar, write all files into `out`, and print the outcome.

    beside: compare with plain grpo, unless that is the controller.
    """
    from rich.console import Console
    from rich.progress import Progress

    from entrostat.logs.runlog import RunLog

    from .figures import entropy_figure
    from .simulator import simulate

    console = Console()
    start = time.perf_counter()
    rollouts = config.environment().rollouts
    log = RunLog(out, {**config.resolved(), "seeds": list(seeds)}, seed=seeds[0])
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(config.controller, total=rollouts)

        def on_rollout(step: int, metrics: dict[str, float]) -> None:
            _require_finite(metrics["entropy"], step)
            log.log(step, metrics)
            progress.update(task, completed=step + 1)

        try:
            trajectory = simulate(config, seeds, diagnostics=diagnostics, on_rollout=on_rollout)
        finally:
            log.close()
        seconds = time.perf_counter() - start
        plain = simulate(uncontrolled(config), seeds) if beside and config.controller not in SAME else None
    _require_finite(trajectory.entropy[:, -1].mean(), rollouts)
    trajectory.save(out / "trajectory.npz")
    entropy_figure(trajectory, out / "entropy.png", None if plain is None or plain.diverged else plain)
    target = "" if trajectory.target is None else f", target {last_third(trajectory.target).mean():g}"
    console.print(
        f"{config.controller} in {config.env}: entropy {trajectory.entropy[:, 0].mean():.3f} → "
        f"{trajectory.entropy[:, -1].mean():.3f} nats (last third {trajectory.entropy_held.mean():.3f}{target}), "
        f"expected reward {trajectory.reward[:, 0].mean():.3f} → {trajectory.reward[:, -1].mean():.3f}"
        f"{on_held_out(trajectory)}; "
        f"{len(seeds)} runs of {rollouts} rollouts in {seconds:.1f} s; {out}",
        highlight=False,
        soft_wrap=not console.is_terminal,
    )
    if plain is not None:
        console.print(comparison(trajectory, plain), highlight=False, soft_wrap=not console.is_terminal)


def on_held_out(trajectory: Trajectory) -> str:
    """Return what the policy reaches on held-out prompts; "" without such prompts."""
    if trajectory.held_out is None:
        return ""
    ends = ((f"pass@{k}", trajectory.held_out.pass_at(k).mean(0)) for k in (1, 8))
    return ", held out " + ", ".join(f"{name} {values[0]:.3f} → {values[-1]:.3f}" for name, values in ends)


def uncontrolled(config: Config) -> Config:
    """Return the same simulation under plain grpo."""
    return replace(config, controller=PLAIN, preset="paper", target=None, controller_args={})


def comparison(controlled: Trajectory, plain: Trajectory) -> str:
    """Return a table of final entropy and late reward, and a line on the cost of control, paired by seeds."""
    if plain.diverged:
        return f"{PLAIN} with the same seeds: {next(iter(plain.diverged.values()))}"
    names = [run.config.controller for run in (controlled, plain)]
    width = max(map(len, names))
    lines = [f"{'':{width}}  final entropy (nats)  reward, last fifth"]
    for name, run in zip(names, (controlled, plain), strict=True):
        entropy, reward = (f"{mean(values):.3f}" for values in (run.entropy[:, -1], late_reward(run)))
        lines.append(f"{name:{width}}  {entropy:20}  {reward}")
    return "\n".join(
        [*(line.rstrip() for line in lines), cost_of_control(late_reward(plain) - late_reward(controlled))]
    )


def cost_of_control(lost: Array) -> str:
    """Return a line on the reward lost by control, (runs,), a loss only beyond FACTOR standard errors."""
    cost, seeds = mean(lost), f"{len(lost)} seeds" if len(lost) > 1 else "one seed, so no error is known"
    if not cost or abs(cost) <= FACTOR * cost.error:
        return f"no measurable cost of control: {cost:+.4f} of reward ({seeds})"
    size = Measured(abs(cost), cost.error)
    return f"control {'cost' if cost > 0 else 'gained'} {size:.4f} of reward ({seeds})"


def late_reward(trajectory: Trajectory) -> Array:
    """Return the mean expected reward over the last fifth of the rollouts, (runs,)."""
    late: Array = trajectory.reward[:, -(trajectory.reward.shape[1] // 5 or 1) :].mean(1)
    return late


def _require_finite(entropy: float, rollouts: int) -> None:
    """Raise ValueError unless the mean entropy over runs after this many rollouts is finite."""
    if not isfinite(entropy):
        raise ValueError(divergence(rollouts))
