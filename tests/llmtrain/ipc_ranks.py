"""The work of every rank in the test of weights that two learners send to two engines on their GPUs."""

import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import ray
import torch
import without_gpus
from vllm_answers import CONFIG, EOS, PROMPTS, TOKENIZER, forced_logp, sharp_model

from llmtrain.cluster.topology import cluster
from llmtrain.policy.model import save
from llmtrain.process.ranks import join, leave
from llmtrain.rollout.ray.direct_weights import Direct
from llmtrain.rollout.ray.places import Seat
from llmtrain.rollout.ray.remote_engine import RemoteEngine
from llmtrain.rollout.rollout_engine import Request, RolloutError
from llmtrain.settings.sampling import Sampling


def main(out: Path) -> None:
    """Write each rank's OUT/rank-<rank>.json."""
    ranks = join("cpu")
    torch.set_num_threads(1)
    model = sharp_model().requires_grad_(False)
    if ranks.rank == 0:
        save(model, TOKENIZER, out / "model")
    ranks.barrier()
    ray.cloudpickle.register_pickle_by_value(without_gpus)
    ids = TOKENIZER(PROMPTS)["input_ids"]
    largest = max(weight.numel() for weight in model.parameters())
    way = Direct("ipc", torch.float32, "cpu", buffer=4 * largest)
    with cluster("") if ranks.rank == 0 else nullcontext():
        seats = [Seat({"num_cpus": 0.1}, {"OMP_NUM_THREADS": "1", "ON_GPU": str(gpu)}) for gpu in range(2)]
        make = partial(without_gpus.start_on_gpu, out / "model", CONFIG, [EOS])
        engine = RemoteEngine(make, CONFIG, ranks, seats, direct=way)
        without_gpus.install_mapped_ipc(setattr, str(out), ranks.rank)
        gaps = []
        for version in (1, 2):
            for weight in model.parameters():
                weight.mul_(0.9)
            engine.update(list(model.named_parameters()), version)
            shares = [list(range(rank, len(ids), 2)) for rank in range(2)]
            rollouts = engine.submit(Request(ids, Sampling(samples=4, max_new_tokens=4), shares, 0))()
            assert set(rollouts.version.tolist()) == {version}
            gaps.append(float((rollouts.logp - forced_logp(model, rollouts)).abs().max()))
        error = ""
        if ranks.rank:  # its GPU gets other weights than it reads
            next(model.parameters()).mul_(0.5)
        try:
            engine.update(list(model.named_parameters()), 3)
        except RolloutError as found:
            error = str(found)
        pieces = len(list((out / f"GPU-{ranks.rank}").iterdir()))
        (out / f"rank-{ranks.rank}.json").write_text(json.dumps({"gaps": gaps, "error": error, "pieces": pieces}))
        ranks.barrier()
        engine.close()
    leave(0)
