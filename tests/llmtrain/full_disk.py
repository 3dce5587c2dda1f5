"""A disk that takes no more, as a limit on files: what writes beyond it fails as it would on a full one."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """Within it this process and those that it starts write no file of more than `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
