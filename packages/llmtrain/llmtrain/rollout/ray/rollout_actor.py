"""The process of a rollout engine on a Ray cluster. It answers its calls one after the other, in their order."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...sequences.rollouts import Rollouts
    from ..rollout_engine import Request, RolloutEngine


class RolloutActor:
    """A rollout engine, called by the first learner.

    make: makes the engine, once the environment is set.
    """

    def __init__(self, make: Callable[[], "RolloutEngine"], environment: dict[str, str]) -> None:
        os.environ |= environment
        self.engine: Any = make()

    def version(self) -> int:
        """Of the weights the engine holds."""
        return self.engine.version

    def answer(self, request: "Request") -> "Rollouts":
        """Responses to the prompts of the only share."""
        return self.engine.submit(request)()

    def update(self, weights: dict[str, Any], version: int) -> int:
        """Take these packed weights; the version that the engine reports then."""
        from .packed_weights import unpack

        self.engine.update(unpack(weights), version)
        return self.engine.version

    def release(self) -> None:
        """Give back memory of the learners' GPUs."""
        self.engine.release()

    def close(self) -> None:
        """Nothing is asked of it any more."""
        self.engine.close()

    def transfer(self, call: str, *args: Any) -> None:
        """A part of an update whose weights come by another way."""
        self.engine.transfer(call, *args)

    def accept(self, version: int, sent: dict[str, int]) -> int:
        """Its end; the version that the engine reports then."""
        self.engine.accept(version, sent)
        return self.engine.version
