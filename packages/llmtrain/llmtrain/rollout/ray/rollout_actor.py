"""Process of a rollout engine on a Ray cluster. It runs its calls one after the other, in order."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...sequences.rollouts import Rollouts
    from ..rollout_engine import Request, RolloutEngine


class RolloutActor:
    """Actor with a rollout engine, called by learner 0.

    make: makes the engine, once the environment is set.
    """

    def __init__(self, make: Callable[[], "RolloutEngine"], environment: dict[str, str]) -> None:
        os.environ |= environment
        self.engine: Any = make()

    def version(self) -> int:
        """Return the version of the engine's weights."""
        return self.engine.version

    def answer(self, request: "Request") -> "Rollouts":
        """Return responses to the prompts of the only share."""
        return self.engine.submit(request)()

    def update(self, weights: dict[str, Any], version: int) -> int:
        """Load packed weights; return the version that the engine reports afterwards."""
        from .packed_weights import unpack

        self.engine.update(unpack(weights), version)
        return self.engine.version

    def release(self) -> None:
        """Release memory of the learners' GPUs."""
        self.engine.release()

    def close(self) -> None:
        """Close the engine; no call follows."""
        self.engine.close()

    def transfer(self, call: str, *args: Any) -> None:
        """Run one call of a weight transfer."""
        self.engine.transfer(call, *args)

    def accept(self, version: int, sent: dict[str, int]) -> int:
        """Finish a weight transfer; return the version that the engine reports afterwards."""
        self.engine.accept(version, sent)
        return self.engine.version
