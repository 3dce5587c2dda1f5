"""Facts about a rule for pages, presets and chains; few rules need any of them."""

from typing import Any, ClassVar

from .support import Support


class RuleFacts:
    """Facts about a rule, with values for a rule that has nothing special."""

    name: ClassVar[str] = ""
    """Name in `make`; of a class outside it is made from the class's own."""
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "released": {}}
    """Settings of each preset that differ from the defaults."""
    source: ClassVar[str] = ""
    """Source of the rule: paper, equation."""
    quadrants: ClassVar[tuple[str, ...]] = ()
    """Quadrants it acts on (STEER, figure 2). I: A > 0, likely token; II: A > 0, unlikely; III: A < 0, unlikely;
    IV: A < 0, likely."""
    implied_surrogate: ClassVar[tuple[str, dict[str, Any]] | None] = None
    """Name and settings of the surrogate that the rule needs if a chain names none."""
    released_surrogate: ClassVar[tuple[str, dict[str, Any]] | None] = None
    """Surrogate of the authors' runs, used by the preset `released` if a chain names and implies none."""
    last: ClassVar[bool] = False
    """True if the rule depends on the plans of all other parts; `chain` puts such a part at the end."""
    strictly_on_policy: ClassVar[bool] = False
    """True if the rule holds only for samples of the current policy; reused samples then give a warning."""
    idle_on_policy: ClassVar[bool] = False
    """True if the rule has no gradient while the policy is still the one that made the rollout."""
    initial_only: ClassVar[tuple[str, ...]] = ()
    """Hyperparameters that set the initial state and are not read again; they take no schedule."""

    @property
    def support(self) -> Support | None:
        """Actions whose truncated entropy the plan has a bonus for; None if it has none."""
        return None

    @property
    def proxy(self) -> Support | None:
        """Actions and temperature of the policy of `Tokens.proxy_logp`; None if it is not needed."""
        return None

    @property
    def controls(self) -> str | None:
        """Actuators of a closed loop: "weight", "bonus", "clip" or "anchor", joined by +; None for other rules."""
        return None

    @property
    def anchored(self) -> bool:
        """True if its plan penalises the divergence from a policy; a plan has one such penalty at most."""
        return False
