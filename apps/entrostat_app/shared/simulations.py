"""Cached simulations: quick ones run at once, slow ones after a click and with a progress bar."""

from collections.abc import Sequence

import streamlit as st

from toybandit import Config, Trajectory, simulate
from toybandit.simulator import OnRollout

LIVE_UPDATES = 1_000
"""Upper limit for optimizer updates that run without a click, so that a control redraws quickly."""
LIVE_NUMBERS = 5_000_000
"""Upper limit for log-probabilities in these updates, of tokens and of arms, over all runs."""


def is_live(configs: Sequence[Config], runs: int = 1) -> bool:
    """Return True if `runs` runs of each configuration are quick enough to start whenever a control moves."""
    updates = numbers = 0
    for config in configs:
        environment = config.environment()
        tokens = environment.states * (environment.group or 2 * environment.arms) * environment.length
        passes = environment.rollouts * environment.passes
        updates += passes * environment.mini_batches
        numbers += passes * runs * (tokens + environment.rows * environment.arms)
    return updates <= LIVE_UPDATES and numbers <= LIVE_NUMBERS


def identity(config: Config) -> str:
    """Return everything that a run depends on as text, for the cache.

    That includes the name of an environment's file, which the configuration of a cached trajectory reads again.
    """
    return repr(sorted({**config.resolved(), "env": config.env}.items()))


@st.cache_resource(max_entries=256, show_spinner=False, hash_funcs={Config: identity})
def _slot(config: Config, seeds: tuple[int, ...]) -> list[Trajectory]:
    """Return the list that holds the trajectory once it is simulated.

    The simulation is not a cached function itself: it draws a progress bar, and cached functions must not draw.
    """
    return []


def is_known(config: Config, seeds: tuple[int, ...]) -> bool:
    """Return True if the trajectory is cached."""
    return bool(_slot(config, seeds))


def run(config: Config, seeds: tuple[int, ...], on_rollout: OnRollout | None = None) -> Trajectory:
    """Return the trajectory with policies and predictions, simulated once. Sessions share it: do not write to it."""
    slot = _slot(config, seeds)
    if not slot:
        slot.append(simulate(config, seeds, predict=True, keep_policies=True, on_rollout=on_rollout))
    return slot[0]


def run_or_ask(configs: Sequence[Config], seeds: tuple[int, ...], names: Sequence[str]) -> list[Trajectory] | None:
    """Return the trajectories of several configurations; None if they are slow and the user has not clicked Run.

    names: names of the configurations, for the progress bar. Raises ValueError in one line if a controller cannot run
    in its environment.
    """
    new = {name: config for name, config in zip(names, configs, strict=True) if not is_known(config, seeds)}
    if not is_live(list(new.values()), len(seeds)):
        rollouts = sum(config.environment().rollouts for config in new.values())
        many = f"{len(new)} slow simulations" if len(new) > 1 else "a slow simulation"
        if not st.button(f"Run {many} ({rollouts:,} rollouts)", type="primary", icon=":material/hourglass:"):
            return None
        _run_with_progress(new, seeds)
    return [run(config, seeds) for config in configs]


def _run_with_progress(configs: dict[str, Config], seeds: tuple[int, ...]) -> None:
    bar = st.progress(0.0, "Simulating")
    for number, (name, config) in enumerate(configs.items()):
        total = config.environment().rollouts

        def tell(step: int, _: dict[str, float], number: int = number, name: str = name, total: int = total) -> None:
            if step % 5 == 0:
                bar.progress((number + step / total) / len(configs), f"{name}: rollout {step} of {total}")

        run(config, seeds, tell)
    bar.empty()
