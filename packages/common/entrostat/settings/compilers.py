"""The C++ compiler that torch.compile needs on a CPU."""

import os
import shutil


def check_compiler(setting: str) -> None:
    """Raise ValueError if there is no C++ compiler for a setting that compiles."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ValueError(
            f"{setting} needs the C++ compiler {compiler!r}: install it, set CXX to another, or leave {setting} off"
        )
