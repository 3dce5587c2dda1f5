"""Plan of a mini-batch that verl splits into micro-batches.

    pass without gradient: the tokens of each micro-batch ─► add ─► plan over all of them and all ranks
    verl's update:         each micro-batch              ─► index ─► its part of the plan

verl may reorder the responses when it splits them, so each carries its row. N: packed tokens.
"""

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor
from verl.utils import tensordict_utils as tu

from ..plan import Plan
from .verl_batch import GROUP, group_ids

ROW = "entrostat_row"
"""Key of each response's row in the mini-batch of its process."""


class MiniBatch:
    """Tokens of a mini-batch of one process, collected from micro-batches, and their plan."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        """None while tokens are collected."""
        self.parts: list[Mapping[str, Tensor]] = []
        """Fields of the micro-batches that were collected."""
        self._first = torch.zeros(0, dtype=torch.int64)
        """Index of the first token of each row."""

    def add(self, packed: Mapping[str, Tensor]) -> None:
        """Collect packed fields of a micro-batch, (N,) each, `row` and `position` among them."""
        self.parts.append({name: value.detach() for name, value in packed.items()})

    def collected(self) -> dict[str, Tensor]:
        """Return the fields of all micro-batches, (N,) each."""
        fields = {name: torch.cat([part[name] for part in self.parts]) for name in self.parts[0]}
        first = (fields["position"] == 0).nonzero()[:, 0]
        rows = fields["row"][first]
        self._first = first.new_zeros(int(rows.max()) + 1 if len(rows) else 0).index_copy(0, rows, first)
        self.parts = []
        return fields

    def index(self, packed: Mapping[str, Tensor]) -> Tensor:
        """Return the places of a micro-batch's tokens in the plan, (N,)."""
        return self._first[packed["row"]] + packed["position"]


def prepare_rows(data: TensorDict, engine: Any) -> None:
    """Give each response of a mini-batch its row and its group an integer; split it as verl's update will.

    engine: verl's configuration of the training engine.
    """
    options = ("use_remove_padding", "use_dynamic_bsz", "max_token_len_per_gpu", "micro_batch_size_per_gpu")
    for name in (*options, "use_fused_kernels"):
        if name not in data:
            tu.assign_non_tensor(data, **{name: getattr(engine, name)})
    data[ROW] = torch.arange(len(data), device=data.device)
    if "uid" in data:
        data[GROUP] = group_ids(tu.get(data, "uid"), data.device)
