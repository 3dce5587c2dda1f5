"""A response token by token, for the run log: what each token is, and what the update made of it."""

import math
from collections.abc import Sequence

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from entrostat import Plan, Tokens, entropy_change

DIGITS = 4
"""Significant digits of a logged number."""
TORN = "\ufffd"
"""What a decoder writes for bytes that are not a whole character."""


class TokenTable:
    """The numbers of one response's tokens in the first update that holds it.

    table = TokenTable(sequence=0)
    learner.update(experience, step, watch=table.see)
    table.columns                                        lists, one entry a token; empty when no update held it
    """

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        """Identity of the response in its rollout."""
        self.columns: dict[str, list[float | None]] = {}

    def see(self, tokens: Tokens, plan: Plan) -> None:
        """Take the tokens (N,) and the plan of a mini-batch; see `token_columns`."""
        if not self.columns and tokens.seq_id is not None:
            index = (tokens.seq_id == self.sequence).nonzero()[:, 0]
            if len(index):
                self.columns = token_columns(tokens, plan, index)


def token_columns(tokens: Tokens, plan: Plan, index: Tensor) -> dict[str, list[float | None]]:
    """Numbers of the tokens at `index` (n,), whole sequences, rounded to DIGITS: lists of n; null where not finite.

    logp, entropy: at the update (nats). advantage: as the plan has it. weight: what multiplies it; 0 on dropped tokens.
    entropy_change: the token's part of the metric `flow/policy`: exact to first order, per unit of step size. What the
    tokens do not hold is left out.
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


def pieces(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> list[str]:
    """The text of each token; together they are the text of all, special tokens among it.

    A character whose bytes several tokens share belongs to the last of them, the others are empty.
    """
    found: list[str] = []
    start = done = 0  # decoded from `start`, for some tokens look otherwise at the beginning; told up to `done`
    for end in range(1, len(ids) + 1):
        before, now = (str(tokenizer.decode(list(ids[start:stop]))) for stop in (done, end))
        if now.endswith(TORN) and end < len(ids):
            found.append("")
            continue
        found.append(now[len(before) :])
        start, done = done, end
    return found
