"""Verifiers by name, or a user's function by its import path.

    with get_verifier("math", workers=2) as verify:
        verdicts = verify(["so \\boxed{42}"], ["42"])

A user's function takes (response, ground_truth) and returns a bool or a Verdict; it runs in worker processes, so it
may hang or crash without harm to the others. Its import path is `package.module:function`.
"""

from collections.abc import Callable
from typing import Any

from .verifier import Verifier


def _pooled(check: str) -> Callable[..., Verifier]:
    """A verifier whose `check` ("module:function") runs in killable processes."""

    def build(**settings: Any) -> Verifier:
        from .pool import CheckPool

        return CheckPool(check, **settings)

    return build


def _direct(name: str) -> Callable[..., Verifier]:
    """A verifier whose check cannot hang and runs here."""

    def build(**settings: Any) -> Verifier:
        from .direct import DIRECT, DirectVerifier

        return DirectVerifier(DIRECT[name])

    return build


def _python(**settings: Any) -> Verifier:
    from .python_tests import PythonVerifier

    return PythonVerifier(**settings)


VERIFIERS: dict[str, Callable[..., Verifier]] = {
    "math": _pooled("llmtrain.verifiers.math_answer:check"),
    "exact": _direct("exact"),
    "regex": _pooled("llmtrain.verifiers.regex:check"),
    "countdown": _direct("countdown"),
    "python": _python,
}
"""Name to a function that builds the verifier."""


def get_verifier(name: str, *, workers: int = 2, timeout: float = 5.0, memory_mib: int = 1024) -> Verifier:
    """The verifier `name`: one of VERIFIERS, or the import path `module:function` of a user's check.

    Args:
        name: which.
        workers: checks at a time; `exact` and `countdown` need no workers and ignore all of these.
        timeout: seconds for one item.
        memory_mib: MiB that one check may use.

    Raises:
        ValueError: for an unknown name and for a function that cannot be imported.
    """
    if workers < 1 or timeout <= 0 or memory_mib < 1:
        raise ValueError(
            f"a verifier needs workers >= 1, timeout > 0 and memory_mib >= 1; got {workers}, {timeout}, {memory_mib}"
        )
    if ":" in name:
        build = _pooled(name)
    elif name in VERIFIERS:
        build = VERIFIERS[name]
    else:
        raise ValueError(
            f"unknown verifier {name!r}; choose from {', '.join(VERIFIERS)}, or give a function as module:function"
        )
    return build(workers=workers, timeout=timeout, memory_mib=memory_mib)
