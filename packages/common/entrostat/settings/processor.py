"""Name of this machine's processor, and which instructions it has that decide how fast numbers are multiplied."""

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
WIDEST = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16")
"""Instructions for vectors and bf16, as Linux names them."""


def processor() -> str:
    """Return the name and those of WIDEST that it has, as in "AMD EPYC (avx2)"; the architecture if Linux says none."""
    facts = _facts()
    there = facts.get("flags", facts.get("Features", "")).split()
    widest = [name for name in WIDEST if name in there]
    return processor_name() + (f" ({', '.join(widest)})" if widest else "")


def processor_name() -> str:
    """Return the name alone; the architecture if Linux says none."""
    return _facts().get("model name") or platform.machine()


def _facts() -> dict[str, str]:
    """Return what Linux says of the first core; empty on other systems."""
    text = CPUINFO.read_text(encoding="utf-8", errors="replace") if CPUINFO.is_file() else ""
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
