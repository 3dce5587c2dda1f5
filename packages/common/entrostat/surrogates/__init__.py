"""Surrogates: the elementwise loss of a token, given its plan. Importing this package registers them all."""

from . import base, gradient_keeping, ratio_clip, sequence
from .base import ClippedRatio, Reinforce, SurrogateController
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
    "ClippedRatio",
    "Reinforce",
    "SurrogateController",
    "base",
    "gradient_keeping",
    "ratio_clip",
    "sequence",
]
