"""One of several ranks of a run, of which one fails at its second step and the others do not know, or all.

RANK=... WORLD_SIZE=...  python faulty_rank.py CONFIG WHO WHAT        WHO: rank or all. WHAT: killed, or a key of ERRORS
"""

import os
import signal
import sys

import torch

from entrostat.plain_yaml import load_yaml
from llmtrain.config import TrainConfig
from llmtrain.nested import merge
from llmtrain.rollout.engine import RolloutError
from llmtrain.run import train_run
from llmtrain.trainer import Trainer

ERRORS = {
    "memory": torch.OutOfMemoryError("tried to allocate 7 GiB"),
    "rollout": RolloutError("rollout engine vllm could not answer"),
    "bug": KeyError("a bug"),
    "refused": ValueError("this cannot be"),
    "backend": torch.distributed.DistBackendError("NCCL error: out of memory"),
    "reset": RuntimeError("hub: Connection reset by peer"),
}


def main(config: str, who: str, what: str) -> None:
    annotate = Trainer._step_stats

    def fails(trainer: Trainer, entropy: float):
        if trainer.step == 1 and who in (os.environ["RANK"], "all"):
            if what == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ERRORS[what]
        return annotate(trainer, entropy)

    Trainer._step_stats = fails
    sys.exit(train_run(merge(TrainConfig(), load_yaml(config))))


if __name__ == "__main__":
    main(*sys.argv[1:])
