"""GPUs by their data sheets, and what real training reaches on them."""

from dataclasses import dataclass

GIB = 1 << 30
GB = 10**9


@dataclass(frozen=True, kw_only=True)
class GPU:
    """One GPU of a server of eight. Rates are in one direction."""

    name: str
    flops: float
    """Dense bf16 FLOP/s, without sparsity."""
    memory: int
    """Bytes, as nvidia-smi shows them."""
    bandwidth: float
    """Bytes/s of its memory."""
    nvlink: float
    """Bytes/s to its peers in the server."""
    network: float
    """Bytes/s of its network adapter, as in NVIDIA's reference servers."""
    pcie: float
    """Bytes/s to the host."""
    train_utilisation: float
    """Share of `flops` that training reaches, recomputation counted as work. Sources: TRAIN_SOURCES."""


TRAIN_SOURCES = """\
a100 0.57: a 7B Llama under FSDP on 128 A100, no recomputation in what is counted (IBM and Meta, "Maximizing training
throughput using PyTorch FSDP", 2024). h100 0.46: the same model and code (foundation-model-stack/fms-fsdp, 9,600
tokens/s a GPU). h200: the chip of the h100 with other memory. h20: nothing published that we know of; it has less
arithmetic for each byte/s than an a100 (37 and 153 FLOP/B), so what is not a matrix product costs it relatively less,
and the share of the a100 is taken. Others report from 0.33 (13B on 16 H200) to 0.58 (7B on one H200; KempnerForge)."""


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


# Data sheets of the SXM versions. The network is 400 Gbit/s a GPU beside Hopper, 200 Gbit/s beside Ampere.
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
    """The GPU of that name; ValueError lists the names there are."""
    if name.lower() not in GPUS:
        raise ValueError(f"unknown gpu {name!r}; choose from {', '.join(GPUS)}")
    return GPUS[name.lower()]
