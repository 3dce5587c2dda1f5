"""Surrogates: the elementwise loss of a token, given its plan. Importing this package registers them all."""

from . import base, gradient_keeping, ratio_clip, sequence
from .base import Reinforce, SurrogateController, clipped_ratio_loss, log_likelihood_loss
from .gradient_keeping import CEGPPO, CISPO, SAPO
from .ratio_clip import DCPO, PPO, ClipFree, ClipHigher, ClipLower, ClipTighter
from .sequence import GMPO, GSPO

__all__ = [
    "CEGPPO",
    "CISPO",
    "DCPO",
    "GMPO",
    "GSPO",
    "PPO",
    "SAPO",
    "ClipFree",
    "ClipHigher",
    "ClipLower",
    "ClipTighter",
    "Reinforce",
    "SurrogateController",
    "base",
    "clipped_ratio_loss",
    "gradient_keeping",
    "log_likelihood_loss",
    "ratio_clip",
    "sequence",
]
