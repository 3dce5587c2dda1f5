"""Experiments with sliders, which compare a claim's prediction with a measurement.

outcome = CLAIMS["thm1-centred"].live.run(shift=0.5)      outcome.verdict, .predicted, .measured, .residual
"""

import pkgutil
from importlib import import_module

from ..trial import TRIALS, Outcome, Parameter, Trial, trial

for _module in pkgutil.iter_modules(__path__):
    import_module(f".{_module.name}", __name__)

__all__ = ["TRIALS", "Outcome", "Parameter", "Trial", "trial"]
