"""Surrogates: the elementwise loss of a token, given its plan. Importing this package registers them all."""

from . import adaptive_clip, base, gradient_keeping, ratio_clip, sequence
from .adaptive_clip import AdaptiveClip
from .base import ClippedRatio, Reinforce, SurrogateController
from .gradient_keeping import ASPO, CEGPPO, CISPO, SAPO
from .ratio_clip import DCPO, PPO, ClipFree, ClipHigher, ClipLower, ClipTighter
from .sequence import GMPO, GSPO

__all__ = [
    "ASPO",
    "CEGPPO",
    "CISPO",
    "DCPO",
    "GMPO",
    "GSPO",
    "PPO",
    "SAPO",
    "AdaptiveClip",
    "ClipFree",
    "ClipHigher",
    "ClipLower",
    "ClipTighter",
    "ClippedRatio",
    "Reinforce",
    "SurrogateController",
    "adaptive_clip",
    "base",
    "gradient_keeping",
    "ratio_clip",
    "sequence",
]
