"""Python code in model folders (`auto_map` in their config.json): run only if the configuration says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CodeRefusedError(ValueError):
    """A model folder needs Python code of its own, which is not trusted."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__(
            f"model folder {folder} needs its own Python code (auto_map), which is not run: read that code, then set "
            "model.trust_remote_code (of an existing run: --trust-remote-code), or take a model that transformers knows"
        )


@contextmanager
def refusing_code(folder: str | Path) -> Iterator[None]:
    """Run a block that loads from a model folder; raise CodeRefusedError if transformers refuses its code.

    Transformers also raises this error if it knows no model class for the folder but the folder's own.
    """
    try:
        yield
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise CodeRefusedError(folder) from None
