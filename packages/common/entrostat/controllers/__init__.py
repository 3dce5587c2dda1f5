"""Every entropy controller, one idea a file. Importing this package registers them all."""

from . import (
    band,
    bapo,
    bonus,
    covariance,
    dmmpt,
    edge,
    entropic,
    entropy_advantage,
    entropy_ratio_clip,
    forking_tokens,
    gtpo,
    kl_ref,
    lp_reg,
    one_sign,
    opefo,
    position_advantage,
    positive,
    ppl_advantage,
    random_positive_clip,
    rollout_correction,
    siren,
    stare,
    steer,
    thermostat,
    truncated_entropy,
    unlikeliness,
)
from .band import Aepo, Entrocraft
from .bapo import Bapo
from .bonus import AdaptiveEntropy, EntropyBonus
from .covariance import ClipCov, KLCov
from .dmmpt import Dmmpt
from .edge import Edge
from .entropic import Entropic
from .entropy_advantage import EntropyAdvantage
from .entropy_ratio_clip import EntropyRatioClip
from .forking_tokens import ForkingTokens
from .gtpo import Gtpo
from .kl_ref import KLRef
from .lp_reg import LpReg
from .one_sign import NegativeOnly, PositiveOnly
from .opefo import Opefo
from .position_advantage import PositionAdvantage
from .positive import PositiveReweight
from .ppl_advantage import PplAdvantage
from .random_positive_clip import RandomPositiveClip
from .rollout_correction import RolloutCorrection
from .siren import Siren
from .stare import Stare
from .steer import Steer
from .thermostat import Thermostat
from .truncated_entropy import TruncatedEntropyBonus
from .unlikeliness import Unlikeliness

__all__ = [
    "AdaptiveEntropy",
    "Aepo",
    "Bapo",
    "ClipCov",
    "Dmmpt",
    "Edge",
    "Entrocraft",
    "Entropic",
    "EntropyAdvantage",
    "EntropyBonus",
    "EntropyRatioClip",
    "ForkingTokens",
    "Gtpo",
    "KLCov",
    "KLRef",
    "LpReg",
    "NegativeOnly",
    "Opefo",
    "PositionAdvantage",
    "PositiveOnly",
    "PositiveReweight",
    "PplAdvantage",
    "RandomPositiveClip",
    "RolloutCorrection",
    "Siren",
    "Stare",
    "Steer",
    "Thermostat",
    "TruncatedEntropyBonus",
    "Unlikeliness",
    "band",
    "bapo",
    "bonus",
    "covariance",
    "dmmpt",
    "edge",
    "entropic",
    "entropy_advantage",
    "entropy_ratio_clip",
    "forking_tokens",
    "gtpo",
    "kl_ref",
    "lp_reg",
    "one_sign",
    "opefo",
    "position_advantage",
    "positive",
    "ppl_advantage",
    "random_positive_clip",
    "rollout_correction",
    "siren",
    "stare",
    "steer",
    "thermostat",
    "truncated_entropy",
    "unlikeliness",
]
