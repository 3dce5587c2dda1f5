"""Devices that a run can be on."""

import torch


def check_device(device: str, here: bool = True) -> None:
    """Raise ValueError unless there is such a device, on this machine if `here`."""
    if device not in ("cpu", "cuda"):
        raise ValueError(f"unknown device {device!r}; choose from cpu, cuda")
    if here and device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device cuda is not available here; use --device cpu")
