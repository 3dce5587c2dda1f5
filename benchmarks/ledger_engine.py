"""A rollout engine that samples with the policy, beside a process that holds a GPU's memory as vLLM would.

The process takes FIRST_CONTACT_GIB of the device before a rollout, frees all but a twentieth afterwards, as an engine
does that sleeps, and writes the least that was free to FIRST_CONTACT_LEDGER.
"""

import json
import os
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import torch

from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.rollout.rollout_engine import RolloutError, Start, Weights

GIB = 2**30
ASLEEP = 0.05
"""Share of its memory that an engine keeps while it sleeps."""


def hold(device: str, gib: float, pipe: Connection) -> None:
    """Take and free memory as it is told; the main function of the process."""
    rest = torch.ones(int(gib * ASLEEP * GIB), dtype=torch.uint8, device=device)
    held, free = None, float("inf")
    while (awake := pipe.recv()) is not None:
        try:
            if awake and held is None:
                held = torch.ones(int(gib * GIB) - len(rest), dtype=torch.uint8, device=device)
            elif not awake:
                held = None
                if device == "cuda":
                    torch.cuda.empty_cache()
            if device == "cuda":
                free = min(free, torch.cuda.mem_get_info()[0] / GIB)
            pipe.send((True, free))
        except (RuntimeError, MemoryError) as error:
            pipe.send((False, str(error).splitlines()[0]))


class LedgerEngine(HFEngine):
    """See above."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pipe, other = get_context("spawn").Pipe()
        gib, device = float(os.environ["FIRST_CONTACT_GIB"]), self.model.device.type
        self.process = get_context("spawn").Process(target=hold, args=(device, gib, other), daemon=True)
        self.process.start()
        self.least = float("inf")

    @classmethod
    def start(cls, start: Start) -> "LedgerEngine":
        assert start.model is not None
        assert start.tokenizer is not None
        return cls(start.model, start.tokenizer, start.config, rank=start.rank, whole=start.whole)

    def _tell(self, awake: bool) -> None:
        self.pipe.send(awake)
        works, said = self.pipe.recv()
        if not works:
            raise RolloutError(f"the other process got no memory: {said}")
        self.least = min(self.least, said)
        with open(os.environ["FIRST_CONTACT_LEDGER"], "w") as file:
            json.dump({"least_free_gib": None if self.least == float("inf") else self.least}, file)

    def update(self, weights: Weights, version: int) -> None:
        super().update(weights, version)
        self._tell(True)

    def release(self) -> None:
        self._tell(False)

    def close(self) -> None:
        self.pipe.send(None)
        self.process.join(5)
