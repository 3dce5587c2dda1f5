"""verl's configuration of a policy loss: a dataclass with `get`."""

from dataclasses import dataclass


@dataclass
class PolicyLossConfig:
    loss_mode: str = "vanilla"

    def get(self, key, default=None):
        return getattr(self, key, default)
