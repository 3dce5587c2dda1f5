"""Types of hyperparameters, by what they may be: see `entrostat.allowed`."""

from typing import Annotated

from torch import Tensor

Number = float | Tensor
"""A tensor has one value for each leading run, (runs…,)."""
NotNegative = Annotated[Number, "[0, inf)"]
Positive = Annotated[Number, "(0, inf)"]
Share = Annotated[Number, "[0, 1]"]
