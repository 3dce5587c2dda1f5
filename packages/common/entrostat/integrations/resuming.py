"""Checkpoints of runs that had no controller yet: it starts afresh, and a target relative to the start is refused."""

from pathlib import Path

from ..chaining import Chain
from ..settings.schedules import in_nats

STATE_FILE = "entrostat.pt"
"""File of a checkpoint with the state of the controller."""


def starts_afresh(controller: Chain, checkpoint: str | Path, first: float | None = None) -> str:
    """Return a line that says that the controller starts afresh after a checkpoint without its state.

    first: first logged entropy of the run (nats); None if it is unknown. Raises ValueError if a target is relative:
    it would count from the entropy after the checkpoint.
    """
    for part, name, moving in controller.scheduling.moving:
        if moving.relative:
            if first is None:
                instead = "give it in nats, as a share of the first entropy in the run's log (llmtrain diagnose LOG)"
            else:
                instead = f"say {name}={in_nats(moving, first)}, since the first logged entropy is {first:.3g} nats"
            raise ValueError(
                f"{checkpoint} holds no {STATE_FILE}, so that {part.name}'s {name}={moving} would count from the "
                f"entropy after it: {instead}"
            )
    return f"{checkpoint} holds no {STATE_FILE}: controller {controller.name!r} starts afresh"
