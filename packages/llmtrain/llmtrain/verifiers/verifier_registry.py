"""Verifiers by name: built in, of a plug-in, or a user's function by its import path.

    with get_verifier("math", workers=2) as verify:
        verdicts = verify(["so \\boxed{42}"], ["42"])
    get_verifier("math livecodebench=python")    # rows of the source livecodebench have another one

The function of a user or a plug-in takes (response, ground_truth) and returns a bool or a Verdict; it runs in worker
processes, so it may hang or crash without harm to the others. Its import path is `package.module:function`.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from entrostat.settings.importing import Outside, outside

from .by_source import BySource, Named
from .direct import DirectVerifier, countdown_check, exact
from .pool import CheckPool
from .python_tests import PythonVerifier
from .verdict import Verdict
from .verifier import Verifier


def _direct(check: Callable[[str, Any], Verdict]) -> Callable[..., Verifier]:
    """Return a builder of a verifier whose check cannot hang: it runs here and needs no settings."""
    return lambda **settings: DirectVerifier(check)


VERIFIERS: dict[str, Callable[..., Verifier]] = {
    "math": partial(CheckPool, "llmtrain.verifiers.math.math_answer:check"),
    "exact": _direct(exact),
    "regex": partial(CheckPool, "llmtrain.verifiers.regex:check"),
    "countdown": _direct(countdown_check),
    "ifeval": partial(CheckPool, "llmtrain.verifiers.if_eval:check"),
    "python": PythonVerifier,
}
"""Functions that build a verifier, by name."""
ANSWERS = ("math", "exact", "countdown", "ifeval", "python")
"""Verifiers that leave out thinking before the answer; the others are given patterns or functions of a user."""
GROUP = "llmtrain.verifiers"
"""Group of entry points that declare verifiers: functions (response, ground_truth) -> bool or Verdict."""


def named_verifiers(text: str, key: str = "verifier") -> Named:
    """Return the verifiers that a text names, see `by_source`. Raise ValueError with `key` for an unknown one."""
    named = Named.of(text)
    for name in named.names:
        if name not in VERIFIERS:
            elsewhere(name, key)
    return named


def elsewhere(name: str, key: str = "verifier") -> Outside:
    """Return the verifier of a plug-in, or at an import path. Raise ValueError with `key` for an unknown one."""
    return outside(key, name, VERIFIERS, GROUP, form="a function as module:function")


def _pool(place: Outside, **settings: Any) -> Verifier:
    """Return the verifier at an import path, in processes of its own."""
    try:
        return CheckPool(place.path, **settings)
    except ValueError as error:
        raise ValueError(f"{place}: {error}" if place.distribution else str(error)) from None


def get_verifier(
    name: str, *, workers: int = 2, timeout: float = 5.0, memory_mib: int = 1024, answer_after: str = ""
) -> Verifier:
    """Return the verifier `name`: one of VERIFIERS, of a plug-in, or the import path `module:function` of a check.

    Args:
        name: Name or import path; then those of single sources, see `by_source`.
        workers: Number of checks at a time; `exact` and `countdown` need no workers and ignore all of these.
        timeout: Seconds for one item.
        memory_mib: MiB that one check may use.
        answer_after: Mark before the answer, such as </think>: what follows the last one is judged, and a response
            without it is wrong. "": built-in verifiers leave out thinking by its usual marks, see `thinking`.

    Raises:
        ValueError: for an unknown name and for a function that cannot be imported.
    """
    if workers < 1 or not 0 < timeout < inf or memory_mib < 1:
        raise ValueError(
            "a verifier needs workers >= 1, a finite timeout > 0 and memory_mib >= 1; "
            f"got {workers}, {timeout}, {memory_mib}"
        )
    named = named_verifiers(name)
    started: dict[str, Verifier] = {}
    try:
        for one in named.names:
            build = VERIFIERS[one] if one in VERIFIERS else partial(_pool, elsewhere(one))
            started[one] = build(workers=workers, timeout=timeout, memory_mib=memory_mib)
            started[one].thinks, started[one].answer_after = one in ANSWERS, answer_after
    except BaseException:
        for verifier in started.values():
            verifier.close()
        raise
    return BySource(named, started) if named.by_source else started[named.rest]
