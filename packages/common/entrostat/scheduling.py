"""Numbers of a chain's parts that follow schedules, set once per rollout step."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .controller import Controller, StepStats, numbers_at
from .numbers.per_run import as_state, reading
from .settings.schedules import Moving


class Scheduling:
    """Schedules of the parts of a chain, the rollout step, and the entropy of the first rollout.

    That entropy counts as 1 nat until it is measured; before that no closed loop acts.
    """

    def __init__(self, parts: Sequence[Controller]) -> None:
        self.moving: list[tuple[Controller, str, Moving]] = [
            (part, name, schedule) for part in parts for name, schedule in part.schedules.items()
        ]
        self.step = -1
        """Rollout step observed last; −1 before the first."""
        self.total_steps: int | None = None
        """Rollout steps of the training; None if no schedule needs it."""
        self.initial = as_state(torch.nan)
        """Entropy of the first rollout, (...,), nats; NaN until it is measured."""
        self.measured = False
        """True once it is known to be measured in all runs."""

    def observe(self, stats: StepStats) -> StepStats:
        """Set the numbers of this rollout step; return the statistics with the step, counted here if they have none."""
        self.step = self.step + 1 if stats.step is None else stats.step
        if self.moving:
            whole = any(one.whole for _, _, moving in self.moving for one in moving.single)
            self.total_steps = stats.total_steps if whole else None
            if not self.measured:
                self.initial = torch.where(self.initial.isnan(), reading(stats.entropy), self.initial)
                self.measured = not bool(self.initial.isnan().any())
                self._check_initial()
            self._set_numbers()
        return replace(stats, step=self.step)

    def _check_initial(self) -> None:
        """Raise ValueError if a number is a share of an entropy of 0."""
        relative = [f"{part.name}'s {name}={moving}" for part, name, moving in self.moving if moving.relative]
        if relative and bool((self.initial == 0).any()):
            raise ValueError(
                f"{relative[0]} is relative to the first entropy, and that is 0 nats: give it in nats, and check that "
                "the entropy is the mean over the sampled tokens"
            )

    def _set_numbers(self) -> None:
        initial = torch.where(self.initial.isnan(), 1.0, self.initial)
        for part, name, schedule in self.moving:
            try:
                setattr(part, name, numbers_at(schedule, self.step, self.total_steps, initial))
            except ValueError as error:
                raise ValueError(f"{part.name}: {name}={error}") from None

    def metrics(self) -> dict[str, Tensor]:
        """Return the numbers of the moment as `<controller>/<hyperparameter>`, (...,) each."""
        return {f"{part.name}/{name}": torch.as_tensor(getattr(part, name)) for part, name, _ in self.moving}

    def state_dict(self) -> dict[str, Any]:
        """Return step and initial entropy; empty if nothing moves."""
        if not self.moving:
            return {}
        total = 0 if self.total_steps is None else self.total_steps
        return {"step": torch.tensor(self.step), "total_steps": torch.tensor(total), "initial": self.initial.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state and the numbers of its step."""
        self.step, self.total_steps = int(state["step"]), int(state["total_steps"]) or None
        self.initial = as_state(state["initial"]).clone()
        self.measured = not bool(self.initial.isnan().any())
        if self.step >= 0:
            self._set_numbers()
