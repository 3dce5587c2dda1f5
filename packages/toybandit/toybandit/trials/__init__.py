"""Live versions of the claims: small experiments with sliders, the assumptions of each claim, and the claims in LaTeX.

case = CASES["thm1-centred"]
outcome = case.run(shift=0.5)      outcome.verdict, outcome.predicted, outcome.measured, outcome.residual
case.broken({**case.start, "shift": 0.5})      the conditions that are not met there
STATEMENTS["thm1-centred"]                     the claim in LaTeX
"""

from importlib import import_module

from .registry import TRIALS, Outcome, Parameter, Trial, trial

MODULES = (
    "first_order",
    "tokens",
    "moved",
    "law",
    "rules",
    "baselines",
    "balance",
    "shielding",
    "anchoring",
    "quadrants",
    "signs",
    "control",
    "stability",
    "opefo",
    "trust_region",
    "staleness",
    "delays",
    "polarity",
    "flexible",
    "trap",
)
"""Modules of the trials."""

for _module in MODULES:
    import_module(f".{_module}", __name__)

from .cases import CASES, Case, Condition  # noqa: E402  needs the trials
from .statements import STATEMENTS  # noqa: E402

__all__ = ["CASES", "STATEMENTS", "TRIALS", "Case", "Condition", "Outcome", "Parameter", "Trial", "trial"]
