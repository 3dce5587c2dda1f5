"""Devices that a run can use."""

import torch


def check_device(device: str, here: bool = True) -> None:
    """Raise ValueError unless the device exists; if `here`, it must be available on this machine."""
    if device not in ("cpu", "cuda"):
        raise ValueError(f"unknown device {device!r}; choose from cpu, cuda")
    if here and device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device cuda is not available here; use --device cpu")
