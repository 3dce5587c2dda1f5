"""Token-by-token record of a response for the run log: text of each token, and its numbers in the update."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from entrostat import Plan, Tokens, entropy_change

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

DIGITS = 4
"""Significant digits of a logged number."""
TORN = "\ufffd"
"""Character that a decoder writes for bytes that are not a whole character."""


class TokenTable:
    """Numbers of one response's tokens in the first update that contains it.

    table = TokenTable(sequence=0)
    learner.update(experience, step, watch=table.see)
    table.columns                                        lists, one entry per token; empty if no update contained it
    """

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        """Id of the response in its rollout."""
        self.columns: dict[str, list[float | None]] = {}

    def see(self, tokens: Tokens, plan: Plan) -> None:
        """Record the response if it is among the tokens (N,) of a mini-batch with this plan; see `token_columns`."""
        if not self.columns and tokens.seq_id is not None:
            index = (tokens.seq_id == self.sequence).nonzero()[:, 0]
            if len(index):
                self.columns = token_columns(tokens, plan, index)


def token_columns(tokens: Tokens, plan: Plan, index: Tensor) -> dict[str, list[float | None]]:
    """Return numbers of the tokens at `index` (n,), whole sequences, rounded to DIGITS: lists of n; None if not finite.

    logp, entropy: values at the update (nats). advantage: advantage in the plan. weight: its factor; 0 on dropped
    tokens. entropy_change: the token's part of the metric `flow/policy`, exact to first order, per unit of step size.
    Columns whose inputs are missing in `tokens` are left out.
    """
    logp, entropy, s2, s2l = (
        None if x is None else x[index] for x in (tokens.logp, tokens.entropy, tokens.s2, tokens.s2l)
    )
    size = tokens.advantage.shape
    columns = {"logp": logp, "entropy": entropy}
    columns["advantage"] = plan.advantage.expand(size)[index]
    columns["weight"] = plan.weight.expand(size)[index]
    if logp is not None and entropy is not None and s2 is not None and s2l is not None:
        ascent = -plan.coefficients(logp, entropy, index)[0]
        columns["entropy_change"] = entropy_change.exact(logp, entropy, s2, s2l, ascent)
    return {name: [_rounded(x) for x in column.tolist()] for name, column in columns.items() if column is not None}


def _rounded(x: float) -> float | None:
    return float(f"{x:.{DIGITS}g}") + 0.0 if math.isfinite(x) else None


def pieces(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> list[str]:
    """Return the text of each token; joined, they are the text of all, including special tokens.

    A character whose bytes several tokens share belongs to the last of them; the others are empty.
    """
    found: list[str] = []
    start = done = 0  # decode from `start`, because some tokens decode differently at the beginning; `done` are found
    for end in range(1, len(ids) + 1):
        before, now = (str(tokenizer.decode(list(ids[start:stop]))) for stop in (done, end))
        if now.endswith(TORN) and end < len(ids):
            found.append("")
            continue
        found.append(now[len(before) :])
        start, done = done, end
    return found
