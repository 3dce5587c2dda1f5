"""Failures of actors, in words."""

from ray.exceptions import RayActorError, RayError, RayTaskError

from ..rollout_engine import RolloutError


def cause(error: RayError) -> str:
    """Return the failure in one line, to follow the name of the actor."""
    if isinstance(error, RayTaskError):
        reason = error.cause
        if isinstance(reason, RolloutError):
            return f"failed: {reason}"
        return f"failed: {type(reason).__name__}: {(str(reason).splitlines() or [''])[0]}"
    if "creation task" in str(error):
        return f"did not start: {str(error).splitlines()[-1]}"
    return "crashed" if isinstance(error, RayActorError) else f"was lost: {str(error).splitlines()[0]}"
