"""The verl that the integration is written for: another one is told before anything of verl is imported."""

import warnings
from importlib.metadata import PackageNotFoundError, version

SUPPORTED_VERL = "0.9."


def check_verl(found: str | None = None) -> None:
    """Warn about a newer verl than the supported one. Raises ImportError, in one line, on an older one.

    found: its version; by default that of the installed distribution, or nothing is said if there is none.
    """
    try:
        found = version("verl") if found is None else found
    except PackageNotFoundError:
        return
    if found.startswith(SUPPORTED_VERL):
        return
    number = [int(part) if part.isdigit() else 0 for part in found.split(".")[:2]]
    if number < [0, 9]:
        raise ImportError(
            f"entrostat.integrations.verl is written for verl {SUPPORTED_VERL}x, found {found}: in an older verl or a "
            "fork, five lines in its core_algos.py do it (docs/verl.md, Older versions and forks)"
        )
    warnings.warn(f"written for verl {SUPPORTED_VERL}x, found {found}", stacklevel=3)


check_verl()
