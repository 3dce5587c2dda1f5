"""One of several ranks of a run, of which one fails at its second step and the others do not know, or all.

RANK=... WORLD_SIZE=...  python faulty_rank.py CONFIG WHO WHAT

WHO: rank or all. WHAT: busy, or a key of SIGNALS or ERRORS
"""

import atexit
import os
import signal
import sys
import time

import torch

from llmtrain import cli
from llmtrain.rollout.rollout_engine import RolloutError
from llmtrain.training.step import Step

ERRORS = {
    "memory": torch.OutOfMemoryError("tried to allocate 7 GiB"),
    "rollout": RolloutError("rollout engine vllm could not answer"),
    "bug": KeyError("a bug"),
    "refused": ValueError("this cannot be"),
    "backend": torch.distributed.DistBackendError("NCCL error: out of memory"),
    "reset": RuntimeError("hub: Connection reset by peer"),
}
SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}


def main(config: str, who: str, what: str) -> None:
    observed = Step.observed

    def fails(parts: Step, step: int, entropy: float):
        if step == 1 and who in (os.environ["RANK"], "all"):
            if what in SIGNALS:
                os.kill(os.getpid(), SIGNALS[what])
            while what == "busy":
                time.sleep(0.1)
            raise ERRORS[what]
        return observed(parts, step, entropy)

    Step.observed = fails
    atexit.register(os.abort)  # threads of the process group abort the interpreter's own way out now and then
    sys.exit(cli.main(["train", "--config", config]))


if __name__ == "__main__":
    main(*sys.argv[1:])
