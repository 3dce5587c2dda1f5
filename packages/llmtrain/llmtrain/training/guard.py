"""Guards of a run: what is done if a loss, gradient, entropy or mismatch is not finite or beyond its limit.

    warn         a line on stderr, once; the metric counts
    skip         the update is left out
    stop         so is the rest of the step; then a checkpoint is written and the run ends
    roll_back    the run goes on from its last checkpoint with a lower learning rate

All values are those of all ranks together, so all ranks decide the same. A resumed run comes to the same values, and so
to the same decisions; the number of roll-backs is in the checkpoint.
"""

import math
import sys
from collections import Counter
from dataclasses import replace

from ..policy.engine import NonFiniteError
from ..settings.config import GuardConfig


class RollBackError(ArithmeticError):
    """The run must go on from its last checkpoint with a lower learning rate."""


class TrainingStoppedError(RuntimeError):
    """Training cannot continue; the message names the step and the last checkpoint."""


class Guard:
    """Guard of one run."""

    def __init__(self, config: GuardConfig | None = None, *, prints: bool = False) -> None:
        """config: a `mismatch_above` of None is no limit here. prints: print warnings; only rank 0 does."""
        config = config or GuardConfig()
        self.config = replace(config, mismatch_above=config.mismatch_above or 0.0)
        self.prints = prints
        self.stops_for = ""
        """Reason why the run must stop after this step; empty if it need not."""
        self.left_out: set[str] = set()
        """Names of the guards that left out an update of this step."""
        self._found: Counter[str] = Counter()
        self._warned: set[str] = set()

    def allows(self, name: str, value: float) -> bool:
        """Return False if the update must be left out because of this value of `name`, a guarded quantity.

        Raises NonFiniteError if the value is not finite, and RollBackError if its policy is roll_back.
        """
        if not math.isfinite(value):
            raise NonFiniteError(f"{name} is {value}")
        above, below = (float(getattr(self.config, f"{name}_{end}", 0.0)) for end in ("above", "below"))
        if above and value > above:
            return self._act(name, f"{name} {value:.4g} is above guard.{name}_above {above:g}")
        if below and value < below:
            return self._act(name, f"{name} {value:.4g} is below guard.{name}_below {below:g}")
        return True

    def passes(self, error: NonFiniteError) -> None:
        """Count an update that is left out because of this error; raise it, or RollBackError, if it must not be."""
        if self.config.non_finite == "stop":
            raise error
        self._act("non_finite", str(error))

    def _act(self, name: str, said: str) -> bool:
        """Do what the setting of this name says, and return True if the update is taken all the same."""
        policy = getattr(self.config, name)
        self._found[name] += 1
        if policy == "roll_back":
            raise RollBackError(said)
        if policy == "stop":
            self.stops_for = said
        elif name not in self._warned and self.prints:
            self._warned.add(name)
            goes_on = "the update is left out" if policy == "skip" else "training goes on"
            print(f"guard: {said}; {goes_on}", file=sys.stderr)
        if policy != "warn":
            self._found["skipped"] += 1
            self.left_out.add(name)
        return policy == "warn"

    def metrics(self) -> dict[str, float]:
        """Return how often each guard acted since the last call, for guards with a limit and those that acted."""
        names = [name for name in ("loss", "grad_norm", "entropy", "mismatch") if self.config.limits(name)]
        found, self._found, self.left_out = self._found, Counter(), set()
        return {f"guard/{name}": float(found[name]) for name in dict.fromkeys([*names, *found])}
