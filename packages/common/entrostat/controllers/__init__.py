"""Every entropy controller, one idea a file. Importing this package registers them all."""

from . import bonus, covariance, entropic, opefo, positive, steer
from .bonus import AdaptiveEntropy, EntropyBonus
from .covariance import ClipCov, KLCov
from .entropic import Entropic
from .opefo import Opefo
from .positive import PositiveReweight
from .steer import Steer

__all__ = [
    "AdaptiveEntropy",
    "ClipCov",
    "Entropic",
    "EntropyBonus",
    "KLCov",
    "Opefo",
    "PositiveReweight",
    "Steer",
    "bonus",
    "covariance",
    "entropic",
    "opefo",
    "positive",
    "steer",
]
