"""A rollout engine for the tests of those that hold one: quick, and faulty on demand."""

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from llmtrain.rollout.rollout_engine import Pending, Request, Weights
from llmtrain.sequences.rollouts import Rollouts


@dataclass
class Scripted:
    """Its tokens tell prompt, sample, seed and the weight that it holds.

    faults: what it does when it is asked with a seed: die, stop (its process), hang, raise, or lie: nan, short, long,
    stale; a number makes it slow, in seconds, and a path makes it wait for that file. Of a broadcast a call's name
    stands for the seed.
    once: a file that it leaves at its first fault; where it lies there is none. closed: one that it leaves at its end.
    events: a file that it adds a line to when it has started, takes weights or sleeps. slow: seconds of its start.
    """

    faults: dict[int | str, str | float | Path] = field(default_factory=dict)
    once: Path | None = None
    closed: Path | None = None
    events: Path | None = None
    slow: float = 0.0
    version: int = 0
    weight: int = 0

    def __post_init__(self) -> None:
        time.sleep(self.slow)
        self._note("start")

    def _note(self, event: str) -> None:
        if self.events:
            with self.events.open("a") as file:
                file.write(event + "\n")

    def submit(self, request: Request) -> Pending:
        self._note("answer")
        return self._answer(request, self._fail(request.seed))

    def _fail(self, when: int | str) -> str | float | Path:
        fault = self.faults.get(when, "")
        if fault and self.once:
            fault = "" if self.once.exists() else fault
            self.once.touch()
        if fault in ("die", "stop"):
            os.kill(os.getpid(), signal.SIGKILL if fault == "die" else signal.SIGSTOP)
        if isinstance(fault, float):
            time.sleep(fault)
        while isinstance(fault, Path) and not fault.exists():
            time.sleep(0.01)
        if fault == "raise":
            raise OSError("disk full\nin two lines")
        return fault

    def _answer(self, request: Request, fault: str | float | Path) -> Pending:
        owners = [prompt for prompt in request.shares[0] for _ in range(request.n)]
        bodies = [[prompt, i % request.n, request.seed, self.weight] for i, prompt in enumerate(owners)]
        bodies = [body[: 1 + prompt % 4] for prompt, body in zip(owners, bodies, strict=True)]
        if fault == "short":
            owners, bodies = owners[1:], bodies[1:]
        if fault == "long":
            bodies[0] = [0] * 100
        ids = torch.tensor([token for body in bodies for token in body])
        logp = torch.full((len(ids),), -0.5)
        if fault == "nan":
            logp[-1] = torch.nan
        rollouts = Rollouts(
            prompt_ids=[[1]] * len(request.prompt_ids),
            response_ids=ids,
            response_lengths=torch.tensor([len(body) for body in bodies]),
            logp=logp,
            prompt_index=torch.tensor(owners),
            finished=torch.ones(len(bodies), dtype=torch.bool),
            version=self.version - (fault == "stale"),
        )
        return lambda: rollouts

    def update(self, weights: Weights, version: int) -> None:
        """Negative weights are dropped, and nothing is said."""
        self._note("update")
        found = int(dict(weights)["w"])
        if found >= 0:
            self.weight, self.version = found, version

    def transfer(self, call: str, *args: object) -> None:
        """Knows when an update ends, and no weights."""
        self._fail(call)
        if call == "init_weight_transfer_engine":
            self.weight = args[0]["rank_offset"]
        if call == "finish_weight_update":
            self.version = int(args[0])

    def accept(self, version: int, sent: dict[str, int]) -> None:
        self.version -= self._fail("accept") == "stale"

    def release(self) -> None:
        self._fail("release")
        self._note("sleep")

    def close(self) -> None:
        if self.closed:
            self.closed.touch()
