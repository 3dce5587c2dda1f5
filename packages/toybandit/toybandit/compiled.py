"""A simulation as machine code: `torch.compile` of a pass, and of what a rollout draws.

What is compiled is the simulator's own code, controllers included, so that every rule is defined once. What looks at
numbers from Python (which tokens are the k largest, which responses are of one length) cannot be compiled, and runs as
it is.
"""

import os
import shutil
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

KINDS = 1 << 10
"""How many configurations and sizes of a function a process keeps compiled."""


class Compiled:
    """A function that is compiled, or found to be none that can be: then it says so once, and runs as it is.

    Raises ValueError where there is no C++ compiler.
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
                warnings.warn(f"{self.name} cannot be compiled and runs as it is", stacklevel=2)
        return self.function(*args)


@cache
def machine_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, to be compiled anew for every configuration and size. ValueError where there is no C++ compiler."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ValueError(
            f"compile needs the C++ compiler {compiler!r}: install it, set CXX to another, or leave it off"
        )
    config = torch._dynamo.config
    config.recompile_limit, config.accumulated_recompile_limit = KINDS, KINDS
    # Arms lie within their table: checking each of them again would take a quarter of the time.
    return torch.compile(function, fullgraph=True, dynamic=False, options={"assert_indirect_indexing": False})
