"""GPU data sheets, and the share of peak FLOP/s that real training reaches."""

from dataclasses import dataclass

GIB = 1 << 30
GB = 10**9


@dataclass(frozen=True, kw_only=True)
class GPU:
    """GPU in a server of eight. Bandwidths are for one direction."""

    name: str
    flops: float
    """Dense bf16 FLOP/s, without sparsity."""
    memory: int
    """Memory in bytes, as shown by nvidia-smi."""
    bandwidth: float
    """Memory bandwidth (bytes/s)."""
    nvlink: float
    """Bandwidth to other GPUs in the server (bytes/s)."""
    network: float
    """Bandwidth of the GPU's network adapter (bytes/s), as in NVIDIA's reference servers."""
    pcie: float
    """Bandwidth to the host (bytes/s)."""
    train_utilisation: float
    """Share of `flops` that training reaches, counting recomputation as work. Sources: TRAIN_SOURCES."""


TRAIN_SOURCES = """\
a100 0.57: a 7B Llama under FSDP on 128 A100, recomputation not counted (IBM and Meta, "Maximizing training throughput
using PyTorch FSDP", 2024). h100 0.46: the same model and code (foundation-model-stack/fms-fsdp, 9,600 tokens/s per
GPU). h200: the h100 chip with different memory. h20: no published value known to us; it has fewer FLOP/s per byte/s
than an a100 (37 against 153 FLOP/B), so operations other than matrix products cost relatively less, and we use the
a100's share. Others report from 0.33 (13B on 16 H200) to 0.58 (7B on one H200; KempnerForge)."""


def _gpu(name: str, tflops: float, mib: int, tbs: float, nvlink: float, network: float, pcie: float, use: float) -> GPU:
    return GPU(
        name=name,
        flops=tflops * 1e12,
        memory=mib << 20,
        bandwidth=tbs * 1e12,
        nvlink=nvlink * GB,
        network=network * GB,
        pcie=pcie * GB,
        train_utilisation=use,
    )


# Data sheets of the SXM versions. The network has 400 Gbit/s per GPU with Hopper and 200 Gbit/s with Ampere.
GPUS = {
    gpu.name: gpu
    for gpu in (
        _gpu("a100", 312, 81920, 2.039, 300, 25, 32, 0.57),
        _gpu("h100", 989, 81559, 3.35, 450, 50, 64, 0.46),
        _gpu("h200", 989, 143771, 4.8, 450, 50, 64, 0.46),
        _gpu("h20", 148, 97871, 4.0, 450, 50, 64, 0.57),
    )
}


def get_gpu(name: str) -> GPU:
    """Return the GPU named `name`. Raises ValueError with the known names if it is unknown."""
    if name.lower() not in GPUS:
        raise ValueError(f"unknown gpu {name!r}; choose from {', '.join(GPUS)}")
    return GPUS[name.lower()]
