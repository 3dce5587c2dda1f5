"""Start options of vLLM on this machine, and isolation of the process that starts it."""

import os
import random
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from transformers import PretrainedConfig

from ...settings.config import ModelConfig, RolloutConfig

CPU_HEAD = 32
"""Lower limit for the size of an attention head."""
CPU_SEQUENCES, CPU_TOKENS, CPU_BLOCK = 512, 8192, 32
"""CPU limits for sequences and tokens per step, and tokens of a cache block, the unit that prompts share."""
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""LoRA ranks that vLLM supports; an adapter of another rank is padded to the next."""


def check_heads(model: PretrainedConfig | ModelConfig, device: str) -> None:
    """Raise ValueError if vLLM on a CPU does not support the head size of a model, or of one to be built."""
    heads = vars(model).get("num_heads" if isinstance(model, ModelConfig) else "num_attention_heads")
    known = vars(model)  # a family whose layers differ refuses to be asked by attribute
    latent = known.get("kv_lora_rank")  # its heads are of another size
    width = None if latent else known.get("head_dim") or (known.get("hidden_size", 0) // heads if heads else 0)
    if device == "cpu" and width and width < CPU_HEAD:
        raise ValueError(
            f"rollout engine vllm on a CPU needs attention heads of size {CPU_HEAD} or more; this model's have size "
            f"{width}: use another model, such as --model.num-heads {model.hidden_size // CPU_HEAD or 1}"
        )


def check_allocator(variables: Mapping[str, str]) -> None:
    """Raise ValueError if torch's memory has no handle for another process: expandable segments, cudaMallocAsync.

    vLLM's own memory that sleeps does without them too.
    """
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        for said in ("expandable_segments:True", "backend:cudaMallocAsync"):
            if said.lower() in variables.get(name, "").lower().replace(" ", ""):
                raise ValueError(
                    f"{name} has {said}, and an engine on the trainer's GPU can neither sleep nor take weights from "
                    "such memory: unset it, or use --topology.name ray --topology.placement disaggregated"
                )


def changes_transformers(model: PretrainedConfig) -> bool:
    """Return True if vLLM runs a model by the classes of transformers: it changes those that the trainer uses."""
    from vllm import ModelRegistry

    native = [ModelRegistry.models[name] for name in model.architectures or () if name in ModelRegistry.models]
    return all(getattr(found, "class_name", "").startswith("Transformers") for found in native)


def dtype_of(config: RolloutConfig, device: str) -> torch.dtype:
    """Return the engine's precision."""
    chosen = ("bfloat16" if device == "cuda" else "float32") if config.dtype == "auto" else config.dtype
    return torch.bfloat16 if chosen == "bfloat16" else torch.float32


def options(config: RolloutConfig, device: str, limit: int, lora_rank: int = 0) -> dict[str, Any]:
    """Return arguments of vLLM's LLM. lora_rank: rank of its adapter; 0 for none."""
    both: dict[str, Any] = {
        "dtype": dtype_of(config, device),
        "skip_tokenizer_init": True,
        "tensor_parallel_size": config.tensor_parallel_size,
        "max_model_len": limit,
        "enable_prefix_caching": config.enable_prefix_caching,
        "logprobs_mode": "processed_logprobs",
        "seed": 0,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
    }
    if config.tensor_parallel_size > 1:
        both["distributed_executor_backend"] = "mp"  # in a Ray actor vLLM would otherwise request Ray workers
    if lora_rank:
        room = min(rank for rank in LORA_RANKS if rank >= lora_rank)
        both |= {"enable_lora": True, "max_lora_rank": room, "max_loras": 1}
    if config.max_num_seqs:
        both["max_num_seqs"] = config.max_num_seqs
    if device == "cuda":
        return both | {"gpu_memory_utilization": config.gpu_memory_utilization}
    return (
        {"max_num_seqs": CPU_SEQUENCES}
        | both
        | {
            "enforce_eager": True,
            "kv_cache_memory_bytes": int(config.kv_cache_gib * 2**30),
            "block_size": CPU_BLOCK,
            "enable_chunked_prefill": False,  # seeded sampling fails on a CPU if a prompt is split
            "max_num_batched_tokens": max(CPU_TOKENS, limit),
        }
    )


def environment(device: str, own: bool, gpus: int) -> dict[str, str]:
    """Return environment variables for vLLM; own: in separate processes, with `gpus` GPUs each."""
    found = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": str(int(own)),
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        "VLLM_CPU_OMP_THREADS_BIND": os.environ.get("VLLM_CPU_OMP_THREADS_BIND", "nobind"),  # ranks share the cores
        "HF_HUB_OFFLINE": "1",
    }
    if device == "cuda":
        found["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # handles of GPU memory are pickled
    if device == "cuda" and gpus == 1:  # of this rank
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(torch.cuda.device_count())))).split(",")
        found["CUDA_VISIBLE_DEVICES"] = seen[torch.cuda.current_device()]
    return found


@cache
def threads_of_vllm() -> int:
    """Return the number of threads with which vLLM computes in this process: that of torch at the first call.

    On a CPU, vLLM keeps a matrix product for each number of rows, for all engines of the process. The layout in which
    it expects the weights depends on the number of threads; with another number later, results would be wrong.
    """
    return torch.get_num_threads()


@contextmanager
def apart(variables: Mapping[str, str], keep_group: bool) -> Iterator[None]:
    """Run vLLM without changing this process: restore random states, thread count, environment and process group.

    variables: environment for vLLM only.
    keep_group: vLLM must not destroy the default process group.
    """
    environ, numpy_state, python_state = dict(os.environ), np.random.get_state(), random.getstate()  # noqa: NPY002
    threads, set_threads, destroy = torch.get_num_threads(), torch.set_num_threads, dist.destroy_process_group
    hook = sys.excepthook
    if keep_group:
        dist.destroy_process_group = lambda group=None: destroy(group) if group is not None else None
    try:
        os.environ.update(variables)
        torch.set_num_threads(threads_of_vllm())
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
            yield
    finally:
        dist.destroy_process_group, torch.set_num_threads = destroy, set_threads
        sys.excepthook = hook
        torch.set_num_threads(threads)
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        if os.environ != environ:
            os.environ.clear()
            os.environ.update(environ)
