"""Metrics of whole responses: their lengths, and the covariance of their log-probability and advantage.

    Cov = mean over prompts of   1/n · Σ_i (x_i − x̄)(A_i − Ā),   x_i = log π(y_i|x)/|y_i|,   i = 1 … n responses

Source: The Entropy Mechanism, section 3.3: the covariance of equation 7 in a group, with log-probabilities divided by
the length of the response, averaged over the prompts of a batch. Its second argument there is π·A, of the expectation
over all responses; sampled responses have that weight already, as in equation 8 for tokens.
"""

import numpy as np
import torch
from torch import Tensor

from ..evaluation.difficulty import covariances
from ..process.ranks import Ranks


def response_covariance(logp: Tensor, lengths: Tensor, advantage: Tensor, group: Tensor, ranks: Ranks) -> float:
    """Return Cov in nats times units of advantage; NaN without responses. A group may be divided over ranks.

    Args:
        logp: log π of the tokens of this rank's responses, in order (N,).
        lengths: tokens of each response (B,), at least 1.
        advantage: advantage of each response (B,).
        group: prompt index of each response (B,), the same on all ranks.
    """
    owner = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    total = torch.zeros(len(lengths), dtype=torch.float64).index_add_(0, owner, logp.detach().cpu().double())
    rows = ranks.gather(torch.stack([total / lengths, advantage.double(), group.double()], 1).tolist())
    if not rows:
        return float("nan")
    x, a, prompt = np.array(rows).T
    return float(np.nanmean(covariances(x, a, prompt.astype(np.int64))))


def length_metrics(lengths: Tensor, correct: Tensor, ranks: Ranks) -> dict[str, float]:
    """Return `response_length` (mean, tokens), its `/max`, and its means of `/correct` and `/wrong` responses.

    lengths: tokens of each response (B,). correct: verdicts, 1 or 0 (B,). A mean over no response is left out.
    """
    size, right = lengths.double(), correct.double()
    sums = torch.stack([size.sum(), (size * right).sum(), right.new_tensor(len(right)), right.sum()])
    tokens, of_right, count, number = ranks.total(sums).tolist()
    found = {"response_length": tokens / count, "response_length/max": float(ranks.most(int(max(lengths, default=0))))}
    if number:
        found["response_length/correct"] = of_right / number
    if number < count:
        found["response_length/wrong"] = (tokens - of_right) / (count - number)
    return found
