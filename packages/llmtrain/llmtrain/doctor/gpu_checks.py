"""Checks of `llmtrain doctor --gpu`: the trainer's own classes with a tiny model, on the device of the training.

Each function runs in its own process on a given device: cuda, or cpu for a rehearsal.
"""

import ctypes
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from .checks import Fault, Skip, need_cuda
from .checks import triton as kernel

GIB = 1 << 30
LEAST_SHARED = 2.0
"""Minimum of shared memory for Ray's object store (GiB); containers have 64 MiB by default."""
SLEEPING = 3.0
"""Upper limit for the GPU memory of a sleeping engine (GiB): CUDA context, CUDA graphs."""
TURNS = 3
"""Weight updates of the engine."""
TOLERANCE = {"cpu": 1e-4, "cuda": 0.05}
"""Upper limit for mean |Δ log p| between trainer and engine (nats): float32 on a CPU, bfloat16 on CUDA."""
HEAD_ERRORS = {"cpu": (1e-5, 1e-4), "cuda": (2e-3, 2e-2)}
"""Upper limits for errors of the fused head against float64: log p (nats), gradient (share of its largest entry)."""


def driver(device: str) -> str:
    """Check that the driver and the GPUs fit the torch build."""
    import torch

    if device == "cpu":
        raise Skip("a CPU has no driver")
    need_cuda()
    number, built = ctypes.c_int(), torch.version.cuda
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    supported = f"{number.value // 1000}.{number.value % 1000 // 10}"
    if number.value // 1000 < int(str(built).split(".")[0]):  # within a major version CUDA is compatible
        raise Fault(f"the driver supports CUDA {supported}, torch is built for {built}", "install a newer driver")
    names = []
    for i in range(torch.cuda.device_count()):
        place = torch.cuda.get_device_capability(i)
        arch = f"sm_{place[0]}{place[1]}"
        if arch not in torch.cuda.get_arch_list():
            raise Fault(f"GPU {i} is {arch}; torch supports {', '.join(torch.cuda.get_arch_list())}", "change torch")
        free, total = torch.cuda.mem_get_info(i)
        if free < 0.95 * total:
            raise Fault(
                f"{(total - free) / GIB:.1f} of {total / GIB:.0f} GiB of GPU {i} are taken by other processes",
                "end them: nvidia-smi lists them",
            )
        names.append(f"{torch.cuda.get_device_name(i)}, {total / GIB:.0f} GiB")
    return f"CUDA {built} on a driver for {supported}: {'; '.join(names)}"


def shared_memory(device: str) -> str:
    """Check the free space in /dev/shm, which Ray's object store and NCCL use."""
    total, _, free = shutil.disk_usage("/dev/shm")
    store = min(0.3 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), 0.95 * total)
    if free < LEAST_SHARED * GIB:
        raise Fault(
            f"/dev/shm has {free / GIB:.2f} GiB free of {total / GIB:.2f}",
            "in a container: docker run --shm-size=64g, or an emptyDir with medium Memory on Kubernetes",
        )
    return (
        f"{free / GIB:.0f} GiB free in /dev/shm; Ray's object store takes {store / GIB:.0f}, enough for "
        f"{store / 2e9:.0f} billion bf16 parameters"
    )


def head(device: str) -> str:
    """Compare the fused head, in Triton if available, with float64."""
    from ..kernels.timing import Bench, Case

    said = kernel()
    shape = (256, 1536, 151_936) if device == "cuda" else (64, 32, 500)
    found = Bench(Case("fused", *shape, device=device)).errors()
    for what, error, most in zip(("log p", "the gradient"), found, HEAD_ERRORS[device], strict=True):
        if error is None or not error <= most:
            raise Fault(f"the error of {what} is {error}, above {most}", "see python benchmarks/fused_head.py time")
    return f"{said}; error of log p {found[0]:.0e} nats, relative error of the gradient {found[1]:.0e}"


def broadcast(device: str) -> str:
    """Broadcast 64 MiB from one rank to another, and check every number."""
    import torch

    if device == "cuda" and torch.cuda.device_count() < 2:
        raise Skip("two GPUs are needed")
    found = _ranks(_broadcast, device, 2)
    return f"64 MiB arrived, {found['gib_per_second']:.1f} GiB/s"


def zero(device: str) -> str:
    """Take a step with ZeRO 1, 2 and 3, and compare gradient norm and step with the torch engine."""
    import torch

    size = min(2, torch.cuda.device_count()) if device == "cuda" else 2
    found = _ranks(_zero, device, size)
    for what, error in found.items():
        if not error < 1e-3:
            raise Fault(f"{what} differs from torch's by {error:.1%}", "change the deepspeed version")
    worst = max(found.values())
    return f"{size} rank{'s' * (size > 1)}: gradient norms and steps differ from torch's by {worst:.0e} at most"


def engine(device: str) -> str:
    """Start vLLM and, three times, generate, sleep, train, wake up and load new weights."""
    import torch

    from ..policy.engine import TorchEngine
    from ..policy.lora import whole_weights
    from ..policy.model import build_tiny, save
    from ..policy.policy import Policy
    from ..policy.tokenizer import build_char_tokenizer
    from ..process.gpu_memory import empty_cache
    from ..rollout.rollout_engine import Request
    from ..rollout.vllm.vllm_engine import VLLMEngine
    from ..sequences.batch import Batch
    from ..settings.config import OptimConfig, RolloutConfig
    from ..settings.sampling import Sampling

    tokenizer = build_char_tokenizer("0123456789")
    model = build_tiny(len(tokenizer), hidden=128, layers=2, heads=2, kv_heads=2, intermediate=128)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    free, worst, told = _free(device), 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        save(model, tokenizer, folder)
        torch.nn.Module.to(model, torch.device(device), dtype)
        policy = Policy(model.train())
        trainer = TorchEngine(model, OptimConfig(lr=1e-3))
        empty_cache()
        config = RolloutConfig(
            name="vllm", max_new_tokens=16, max_model_len=64, kv_cache_gib=0.25, gpu_memory_utilization=0.4
        )
        vllm = VLLMEngine(folder, config, [tokenizer.eos_token_id], device=device, sleep_level=2)
        try:
            for turn in range(TURNS):
                sampling = Sampling(samples=8, max_new_tokens=16)
                rollouts = vllm.submit(Request([[3, 4, 5], [6, 7]], sampling, [[0, 1]], turn))()
                vllm.release()
                asleep = _free(device)
                if free - asleep > SLEEPING:
                    raise Fault(
                        f"a sleeping engine keeps {free - asleep:.1f} GiB", "lower rollout.gpu_memory_utilization"
                    )
                stats = policy.token_stats(Batch.of(rollouts), torch.arange(len(rollouts)))
                apart = float((stats.logp.detach().cpu() - rollouts.logp).abs().mean())
                worst = max(worst, apart)
                if not apart <= TOLERANCE[device]:
                    raise Fault(f"log p differs by {apart:.3g} nats from the trainer's", "change the vllm version")
                trainer.backward(-stats.logp.mean())
                trainer.step()
                empty_cache()
                vllm.update(list(whole_weights(model)), turn + 1)
                told.append(f"{asleep:.1f}/{_free(device):.1f}")
        finally:
            vllm.close()
    memory = f"; GiB free before {free:.1f}, asleep/awake {', '.join(told)}" if device == "cuda" else ""
    return f"{TURNS} updates with equal checksums, log p within {worst:.0e} nats{memory}"


def _free(device: str) -> float:
    """Return the free GPU memory (GiB); 0 on a CPU."""
    import torch

    return torch.cuda.mem_get_info()[0] / GIB if device == "cuda" else 0.0


# Several ranks ------------------------------------------------------------------------------------------------------


def _ranks(work: Any, device: str, size: int) -> dict[str, float]:
    """Run `work(ranks)` on every rank, each in its own process, and return rank 0's result."""
    import torch.multiprocessing as mp

    from ..process.local_ranks import free_port

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        mp.spawn(_rank, (size, free_port(), device, work, str(out)), nprocs=size)
        return json.loads(out.read_text())


def _rank(rank: int, size: int, port: int, device: str, work: Any, out: str) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    from ..process.ranks import join, leave

    ranks = join(device, timeout=60.0)
    found = work(ranks)
    if rank == 0:
        Path(out).write_text(json.dumps(found))
    leave(0)


def _broadcast(ranks: Any) -> dict[str, float]:
    import time

    import torch
    import torch.distributed as dist

    sent = torch.arange(1 << 24, dtype=torch.float32, device=ranks.device)
    x = sent.clone() if ranks.rank == 0 else torch.zeros_like(sent)
    dist.broadcast(x, 0)  # the first broadcast sets up connections
    ranks.barrier()
    began = time.perf_counter()
    dist.broadcast(x, 0)
    ranks.barrier()
    seconds = time.perf_counter() - began
    if not torch.equal(x, sent):
        raise Fault(f"rank {ranks.rank} received wrong numbers", "set NCCL_DEBUG=INFO or NCCL_P2P_DISABLE=1")
    return {"gib_per_second": x.nbytes / GIB / seconds}


def _zero(ranks: Any) -> dict[str, float]:
    """Return for each stage the relative error of gradient norm and weight step against the torch engine.

    Both are needed: AdamW's first step shows only the gradient's direction, not its scale.
    """
    import torch

    from entrostat import Tokens, make

    from ..policy.deepspeed_engine import DeepSpeedEngine
    from ..policy.engine import TorchEngine
    from ..policy.lora import whole_weights
    from ..policy.model import build_tiny
    from ..policy.policy import Policy
    from ..sequences.batch import Batch
    from ..settings.config import EngineConfig, OptimConfig

    optim, generator = OptimConfig(lr=1e-3, max_grad_norm=0.1), torch.Generator().manual_seed(0)
    lengths = torch.tensor([5, 3, 7, 4])
    batch = Batch(torch.randint(2, 50, (int(lengths.sum()) + 8,), generator=generator), torch.full((4,), 2), lengths)
    advantage = torch.tensor([1.0, -1.0, 0.5, -0.5])

    def policy_of() -> Policy:
        model = build_tiny(50, hidden=64, layers=2, heads=2, kv_heads=2, intermediate=64).train()
        torch.nn.Module.to(model, ranks.device)
        return Policy(model)

    def weights(policy: Policy, engine: Any) -> Any:
        return torch.cat([w.detach().float().cpu().flatten() for _, w in whole_weights(policy.model, engine.whole)])

    def step(policy: Policy, engine: Any, mine: Any) -> Any:
        part = batch.select(mine)
        every = torch.arange(len(part))
        logp = policy.all_stats(part, 64, engine.ranks).logp
        owner = torch.repeat_interleave(mine, part.response_lengths)
        tokens = Tokens(logp=logp, old_logp=logp, advantage=advantage[owner].to(logp.device))
        plan = make("grpo").plan(tokens, engine.ranks.reduce)
        engine.begin(1)
        engine.backward(policy.loss(part, every, plan, part.response_index(every))[0])
        norm = engine.step()
        return norm, weights(policy, engine) - start

    alone = policy_of()
    engine: Any = TorchEngine(alone.model, optim)
    start = weights(alone, engine)
    norm, moved = step(alone, engine, torch.arange(4))
    found = {}
    for stage in (1, 2, 3):
        policy = policy_of()
        engine = DeepSpeedEngine(policy, optim, EngineConfig(name="deepspeed", zero_stage=stage), ranks)
        its_norm, its_step = step(policy, engine, torch.arange(ranks.rank, 4, ranks.size))
        found[f"the gradient norm of ZeRO {stage}"] = abs(its_norm / norm - 1)
        found[f"the step of ZeRO {stage}"] = float((its_step - moved).norm() / moved.norm())
    return found
