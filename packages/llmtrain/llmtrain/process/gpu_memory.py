"""GPU memory that a trainer shares with a rollout engine in another process.

torch's allocator keeps freed memory, so the process that hands over the GPU empties its cache first:

    trainer builds its models ► empty_cache ► engine starts ► samples ► sleeps ► trainer trains ► empty_cache
        ► engine wakes its weights ► takes new ones ► sender: empty_cache ► engine wakes its KV cache ► samples ...
"""

import gc

import torch

GIB = 1 << 30


def empty_cache() -> None:
    """Free GPU memory that torch's allocator holds but no tensor uses; no-op in a process that uses no GPU."""
    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def peaks() -> dict[str, float]:
    """Return peak GiB allocated by tensors and reserved by torch since the last call; empty if no GPU is used."""
    if not torch.cuda.is_initialized():
        return {}
    taken, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    return {"memory/allocated_gib": taken / GIB, "memory/reserved_gib": reserved / GIB}
