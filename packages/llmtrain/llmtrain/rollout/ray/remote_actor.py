"""Rollout engine in an actor, as rank 0 sees it: what was sent to it, and its answers."""

import time
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError

from ...sequences.rollouts import Rollouts
from ..rollout_engine import Request, RolloutError, check_answer
from .causes import cause

START = 600.0
"""Seconds allowed for an engine to start; rollout.timeout if larger."""


class NeverRanError(RolloutError):
    """Error on an actor that Ray has put on a node which it did not know to be lost."""


@dataclass(eq=False)
class Part:
    """Part of a request, answered by one engine."""

    request: Request
    engine: "RemoteActor"
    call: Any
    """Call that returns the answer."""
    updates: int
    """Number of updates sent to the engine before the call."""
    repeated_at: float = 0.0
    """Time of the call if another engine was asked before; this one's time runs from then on."""


class RemoteActor:
    """Actor of a rollout engine. It runs its calls in order; all methods but `send` and `ask` raise RolloutError.

    name: name in messages.
    timeout: seconds without an answer after which the engine counts as hung.
    """

    def __init__(self, name: str, actor: Any, timeout: float) -> None:
        self.name, self.actor, self.timeout = name, actor, timeout
        self.started = actor.version.remote()
        self.since: float | None = None
        """Time when it was first known to run."""
        self.holds = 0
        """Version of the weights sent last; 0 are those that it starts with."""
        self.updates: list[tuple[int, Any]] = []
        """Versions sent since the last answer, and the calls that will report the engine's version."""
        self.confirmed = 0
        """Number of updates that it has reported."""

    def send(self, packed: Any, version: int) -> None:
        """Send packed weights, for all later requests."""
        self.updates.append((version, self.actor.update.remote(packed, version)))
        self.holds = version

    def ask(self, request: Request) -> Part:
        """Send a request."""
        return Part(request, self, self.actor.answer.remote(request), self.confirmed + len(self.updates))

    def answer(self, part: Part, version: int, began: float) -> Rollouts:
        """Return the answer to a part, of weights of this version, within `timeout` s from `began` on.

        Raises RolloutError if it is late or invalid.
        """
        left = max(began, self.wait_for_start()) + self.timeout - time.monotonic()
        before = self.updates[: max(part.updates - self.confirmed, 0)]
        calls = [*(report for _, report in before), part.call]
        *told, rollouts = self.result(calls, left, f"gave no answer within rollout.timeout {self.timeout:g} s")
        self.updates = self.updates[len(before) :]
        self.confirmed += len(before)
        if told != [sent for sent, _ in before]:
            raise RolloutError(f"{self.name} reports weights {told} instead of {[sent for sent, _ in before]}")
        try:
            check_answer(rollouts, part.request, version, rank=0)
        except RolloutError as error:
            raise RolloutError(f"{self.name}: {error}") from None
        return rollouts

    def wait_until_idle(self, began: float) -> None:
        """Wait until all earlier requests are answered, at most `timeout` s from `began` on."""
        left = max(began, self.wait_for_start()) + self.timeout - time.monotonic()
        self.result(self.actor.version.remote(), left, f"gave no answer within rollout.timeout {self.timeout:g} s")

    def wait_for_start(self) -> float:
        """Return the time when it was first known to run."""
        limit = max(START, self.timeout)
        if self.since is None:
            self.result(
                self.started, limit, f"did not start within {limit:g} s (`ray status` tells if a node has room)"
            )
            self.since = time.monotonic()
        return self.since

    def has_started(self) -> bool:
        """Return True if it runs, without waiting for it. Raises RolloutError if it has failed to start."""
        if self.since is None and not ray.wait([self.started], timeout=0)[0]:
            return False
        self.wait_for_start()
        return True

    def result(self, call: Any, seconds: float, failed: str) -> Any:
        """Return the result of a call; `failed` describes a timeout."""
        try:
            return ray.get(call, timeout=max(seconds, 0.0))
        except GetTimeoutError:
            raise RolloutError(f"{self.name} hangs: it {failed}") from None
        except RayError as error:
            kind = NeverRanError if isinstance(error, RayActorError) and "never ran" in str(error) else RolloutError
            raise kind(f"{self.name} {cause(error)}") from None
