"""Claims of the papers, each checked by a function: words → assumption → threshold and null → measured → verdict."""

from importlib import import_module

from . import report
from .registry import CLAIMS, Claim, Effort, Finding, Record, choose, claim, run_claims

MODULES = (
    "first_order",
    "responses",
    "law",
    "covariance_rules",
    "clipping",
    "holding",
    "tokens",
    "assumption_1",
    "steer",
    "opefo",
    "entropic",
    "feedback",
    "gains",
    "baselines",
    "balance",
    "shielding",
    "anchoring",
    "collapses",
    "trust_region",
    "staleness",
    "delays",
    "start_entropy",
    "polarity",
    "flexible",
    "trap",
)
"""Modules of the claims, in the order of the report."""

for _module in MODULES:
    import_module(f".{_module}", __name__)

__all__ = ["CLAIMS", "Claim", "Effort", "Finding", "Record", "choose", "claim", "report", "run_claims"]
