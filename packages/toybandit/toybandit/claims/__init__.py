"""Claims of the papers, each checked by a function: words → assumption → threshold and null → measured → verdict."""

import pkgutil
from importlib import import_module

from . import report
from .live_case import Live, equals, within
from .mutations import Mutation, Swap
from .registry import CLAIMS, FAILS, HOLDS, Claim, Effort, Finding, Record, claim, run_claims
from .theorems import Theorem

FIRST = (
    "first_order",
    "responses",
    "covariance_sign",
    "law",
    "covariance_rules",
    "clipping",
    "rising_entropy",
    "positive_advantages",
    "data_diversity",
    "holding",
    "tokens",
    "assumption_1",
    "omega_remainder",
    "steer",
    "steer_collapse",
    "opefo",
    "entropic",
    "feedback",
    "high_probability",
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
"""Modules whose claims come first in the report, in this order; the others follow."""

for _module in dict.fromkeys([*FIRST, *(found.name for found in pkgutil.iter_modules(__path__))]):
    import_module(f".{_module}", __name__)

__all__ = [
    "CLAIMS",
    "FAILS",
    "HOLDS",
    "Claim",
    "Effort",
    "Finding",
    "Live",
    "Mutation",
    "Record",
    "Swap",
    "Theorem",
    "claim",
    "equals",
    "report",
    "run_claims",
    "within",
]
