"""Compiled simulation: `torch.compile` of a pass and of a rollout's sampling.

It compiles the simulator's own code, controllers included, so every rule is defined once. Code that reads numbers in
Python (which tokens are the k largest, which responses have the same length) cannot be compiled and runs uncompiled.
So does everything before torch 2.12, which cannot trace frozen dataclasses.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from entrostat.settings.compilers import check_compiler

KINDS = 1 << 10
"""Upper limit for the compiled variants (configurations and sizes) of a function that a process keeps."""


class Compiled:
    """Compiled function that falls back to the original, with one warning, if it cannot be compiled.

    Raises ValueError if there is no C++ compiler.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self.fast: Callable[..., Any] | None = machine_code(function)

    def __call__(self, *args: Any) -> Any:
        if self.fast is not None:
            try:
                return self.fast(*args)
            except (torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError):
                self.fast = None
                warnings.warn(f"{self.name} cannot be compiled and runs uncompiled", stacklevel=2)
        return self.function(*args)


@cache
def machine_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled once per configuration and size. Raise ValueError if there is no C++ compiler."""
    check_compiler("compile")
    config = torch._dynamo.config
    config.recompile_limit, config.accumulated_recompile_limit = KINDS, KINDS
    # Arms are always within their table: checking each index again would take a quarter of the time.
    return torch.compile(function, fullgraph=True, dynamic=False, options={"assert_indirect_indexing": False})
