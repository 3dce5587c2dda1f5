"""Control of the one setting of `toybandit.picture`."""

from toybandit import picture

from .controls import Control

PICTURE_TARGET = Control(
    key="target",
    label="Target of the thermostat",
    symbol="H*",
    unit="nats",
    default=picture.TARGET,
    low=0.0,
    high=picture.HIGHEST,
    step=picture.STEP,
    help="Entropy that the thermostat holds. GRPO has no target.",
)
