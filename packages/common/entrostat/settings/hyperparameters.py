"""Types of hyperparameters, by their allowed values: see `entrostat.settings.allowed`."""

from typing import Annotated

from torch import Tensor

Number = float | Tensor
"""Number, or a tensor with one value per leading run, (runs…,)."""
NotNegative = Annotated[Number, "[0, inf)"]
Positive = Annotated[Number, "(0, inf)"]
Share = Annotated[Number, "[0, 1]"]
