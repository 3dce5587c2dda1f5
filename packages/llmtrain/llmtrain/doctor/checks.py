"""Checks of `llmtrain doctor`. Each function runs in its own process; it returns a report of its work, or raises.

A Fault has the cause and its fix; for any other error the last line is the cause.
"""

import os
import tempfile
import time
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

SECONDS = timedelta(seconds=60)
"""Timeout of process groups; the doctor's own limit is shorter."""
WEIGHTS = 1 << 27
"""Bytes of weights that are sent to measure how fast; containers may have little shared memory."""


class Fault(RuntimeError):
    """Cause of a failed check, with its fix."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.fix = fix


class Skip(Exception):
    """Reason for skipping a check on this machine; not a failure."""


def torch() -> str:
    import torch

    w = torch.ones(8, 8, requires_grad=True)
    (w @ w).sum().backward()
    if w.grad is None or not bool((w.grad == 16).all()):
        raise Fault("a gradient is wrong", "reinstall torch: pip install --force-reinstall torch")
    return f"a product and its gradient, {torch.get_num_threads()} threads"


def cuda() -> str:
    import torch

    need_cuda()
    names = []
    for i in range(torch.cuda.device_count()):
        x = torch.ones(64, 64, device=f"cuda:{i}")
        if (x @ x).sum().item() != 64**3:
            raise Fault(f"GPU {i} computes wrong products", f"set CUDA_VISIBLE_DEVICES without {i}")
        memory = torch.cuda.get_device_properties(i).total_memory / 2**30
        names.append(f"{torch.cuda.get_device_name(i)} ({memory:.0f} GiB)")
    return f"CUDA {torch.version.cuda}: a product on {', '.join(names)}"


def need_cuda() -> None:
    """Raise Fault with the cause if CUDA is not available."""
    import torch

    if torch.version.cuda is None:
        raise Fault(f"torch {torch.__version__} is built without CUDA", "on a GPU machine: pip install torch")
    if torch.cuda.is_available():
        return
    if not list(Path("/dev").glob("nvidia[0-9]*")):
        raise Fault("/dev/nvidia0 is missing", "install the driver, or pass the GPUs into the container")
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        raise Fault("CUDA_VISIBLE_DEVICES is empty", "unset it")
    try:
        torch.cuda.init()
    except RuntimeError as error:
        raise Fault(str(error).splitlines()[0], f"install a driver that supports CUDA {torch.version.cuda}") from None


def gloo() -> str:
    return add_up("gloo", 2)


def nccl() -> str:
    import torch

    need_cuda()
    if not torch.distributed.is_nccl_available():
        raise Fault(f"torch {torch.__version__} is built without NCCL", "pip install torch on Linux")
    return add_up("nccl", min(2, torch.cuda.device_count()))


def add_up(backend: str, size: int) -> str:
    """Check an all_reduce over `size` processes, the last of which is this one; NCCL needs a GPU for each."""
    import torch.multiprocessing as mp

    with tempfile.TemporaryDirectory() as folder:
        method = "spawn" if backend == "nccl" else "fork"  # CUDA cannot be forked; gloo starts faster
        start: Any = mp.get_context(method)
        others = [start.Process(target=add, args=(backend, rank, size, folder)) for rank in range(size - 1)]
        for process in others:
            process.start()
        total = add(backend, size - 1, size, folder)
        for process in others:
            process.join()
    wanted = size * (size + 1) / 2
    if total != wanted:
        raise Fault(f"all_reduce returned {total}, not {wanted}", "set NCCL_DEBUG=INFO to see its transport")
    return f"all_reduce over {size} process{'es' * (size > 1)}"


def add(backend: str, rank: int, size: int, folder: str) -> float:
    """Return the all-reduced sum 1 + ... + size, to which this rank adds rank + 1."""
    import torch
    import torch.distributed as dist

    place = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    store = dist.FileStore(f"{folder}/store", size)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=SECONDS)
    x = torch.tensor(rank + 1.0, device=place)
    dist.all_reduce(x)
    total = x.item()
    dist.destroy_process_group()
    return total


def triton() -> str:
    import torch

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        os.environ["TRITON_INTERPRET"] = "1"
    from ..kernels import rows, triton_rows

    logits = torch.randn(4, 64, device="cuda" if on_gpu else "cpu")
    targets = torch.arange(4, device=logits.device)
    expected, found = rows.accumulate(logits.clone(), targets)[0], triton_rows.accumulate(logits.clone(), targets)[0]
    for x, y in zip(rows.statistics(expected), rows.statistics(found), strict=True):
        torch.testing.assert_close(x, y, atol=1e-4, rtol=1e-4)
    return f"the fused head's kernel {'on the GPU' if on_gpu else 'interpreted; without CUDA torch replaces it'}"


def deepspeed() -> str:
    import torch

    os.environ.setdefault("DS_ACCELERATOR", "cuda" if torch.cuda.is_available() else "cpu")
    from ..policy.deepspeed_engine import import_deepspeed, settings
    from ..policy.engine import adamw
    from ..process.ranks import join
    from ..settings.config import EngineConfig, OptimConfig

    device = join("cuda" if torch.cuda.is_available() else "cpu").device
    model = torch.nn.Linear(8, 2).to(device)
    before = model.weight.detach().clone()
    optim = OptimConfig()
    optimizer, _ = adamw(list(model.parameters()), optim)
    size = sum(p.numel() for p in model.parameters())
    options = settings(EngineConfig(name="deepspeed", zero_stage=1), optim, size, device)
    engine, *_ = import_deepspeed().initialize(
        model=model, optimizer=optimizer, config=options, dist_init_required=False
    )
    engine.backward(engine(torch.ones(4, 8, device=device)).sum())
    engine.step()
    if torch.equal(before, model.weight):
        raise Fault("a ZeRO-1 step changed no weight", "pip install --force-reinstall 'deepspeed>=0.19.8,<0.20'")
    return f"a ZeRO-1 step on {device.type}"


def vllm() -> str:
    import torch

    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    engines: Any = import_module("vllm")  # type checkers must not depend on whether it is installed

    from ..policy.model import build_tiny, save
    from ..policy.tokenizer import build_char_tokenizer

    with tempfile.TemporaryDirectory() as folder:
        tokenizer = build_char_tokenizer("0123456789")
        save(build_tiny(len(tokenizer), hidden=64, layers=1, heads=2, kv_heads=2, intermediate=64), tokenizer, folder)
        on_gpu = torch.cuda.is_available()
        engine = engines.LLM(
            folder,
            dtype="bfloat16" if on_gpu else "float32",
            enforce_eager=True,
            max_model_len=64,
            enable_chunked_prefill=False,
            **({"gpu_memory_utilization": 0.2} if on_gpu else {}),
        )
        sampling = engines.SamplingParams(max_tokens=4, ignore_eos=True, detokenize=False)
        answer = engine.generate([{"prompt_token_ids": [3, 4, 5]}], sampling, use_tqdm=False)[0].outputs[0]
    if len(answer.token_ids) != 4:
        raise Fault(f"vllm generated {len(answer.token_ids)} tokens instead of 4", "reinstall vllm")
    return f"4 tokens from a tiny model on {'the GPU' if on_gpu else 'the CPU'}"


def ray() -> str:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    ray: Any = import_module("ray")
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    answer = ray.get(ray.remote(lambda a, b: a + b).remote(1, 2))
    rate = weights_per_second(ray)
    ray.shutdown()
    if answer != 3:
        raise Fault(f"a task returned {answer}, not 3", "pip install --force-reinstall ray")
    return f"started, ran a task, stopped; weights pass its object store at {rate / 1e9:.1f} GB/s"


def weights_per_second(ray: Any) -> float:
    """Return the bytes per second of weights from this process through the object store to another; best of three.

    On the way of `topology.weight_sync object`: to the host, into the store, out of it, and onto the device.
    """
    import torch

    from ..rollout.ray.packed_weights import pack, unpack

    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = [(str(i), torch.ones(WEIGHTS // 16, dtype=torch.bfloat16, device=device)) for i in range(8)]

    def receive(packed: Any) -> None:
        for _, weight in unpack(packed):
            weight.to(device)

    receiver, rates = ray.remote(num_gpus=int(device == "cuda"))(receive), []
    for _ in range(4):  # the first one starts the process
        began = time.perf_counter()
        ray.get(receiver.remote(ray.put(pack(weights))))
        rates.append(WEIGHTS / (time.perf_counter() - began))
    return max(rates[1:])
