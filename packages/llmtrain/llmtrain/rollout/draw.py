"""Draws of tokens by inversion of their cumulative distribution, from uniform numbers."""

import torch
from torch import Tensor, nn

BLOCK = 256
"""Tokens whose probabilities are added up before the cumulative sum, which is slow: √V at V = 65,536."""


def invert(weight_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """Return indices (B) drawn in proportion to weights, by inversion of their cumulative sum in float64.

    The first sum is over blocks, the second over the tokens of the drawn block.
    """
    if weight_BV.shape[-1] <= BLOCK:
        return _draw(weight_BV, uniform_B)[0]
    blocks_BKW = nn.functional.pad(weight_BV, (0, -weight_BV.shape[-1] % BLOCK)).unflatten(-1, (-1, BLOCK))
    block_B, rest_B = _draw(blocks_BKW.sum(-1), uniform_B)
    token_B, _ = _draw(blocks_BKW[torch.arange(len(block_B), device=block_B.device), block_B], rest_B)
    return block_B * BLOCK + token_B


def _draw(weight_BK: Tensor, uniform_B: Tensor) -> tuple[Tensor, Tensor]:
    """Return indices (B) drawn in proportion to weights, and how far into its weight each draw falls, in [0, 1] (B)."""
    weight_BK = weight_BK.double()
    cdf = weight_BK.cumsum(-1)
    aim = uniform_B[:, None] * cdf[:, -1:]
    last = torch.searchsorted(cdf, cdf[:, -1:].contiguous())  # the last index with a weight; rounding may pass it
    drawn = torch.minimum(torch.searchsorted(cdf, aim, right=True), last)
    drawn = drawn.clamp(max=weight_BK.shape[-1] - 1)  # of weights that are NaN, which whoever asked has to refuse
    before = nn.functional.pad(cdf, (1, 0)).gather(-1, drawn)
    rest = (aim - before) / weight_BK.gather(-1, drawn)
    return drawn[:, 0], rest[:, 0].clamp(0, 1)


def nucleus(logp_BV: Tensor, uniform_B: Tensor, top_p: float) -> Tensor:
    """Return tokens (B) drawn from the fewest whose probabilities add up to `top_p`."""
    logp, tokens = logp_BV.sort(dim=-1, descending=True, stable=True)
    p = logp.double().exp()
    inside = p.cumsum(-1) - p < top_p
    rank = torch.minimum(invert(torch.where(inside, p, 0.0), uniform_B), inside.sum(-1) - 1)
    return tokens.gather(1, rank[:, None])[:, 0]
