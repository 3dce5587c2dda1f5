"""Curriculum: questions are drawn the more often, the farther their groups are from all right and all wrong.

    batch of questions ► verdicts ► pass rate of each, a moving average ► weights ► next batch

A group's advantages are 0 if it is all right or all wrong, and the variance of a verdict is p(1 − p), with p the
question's pass rate. So a question has the weight 4p(1 − p) + floor, from floor to 1 + floor; its rate begins at ½, the
greatest weight, and moves by a share `rate` of the way to each new group's. A batch has no question twice.

Others choose by pass rate too: SPEED-RL (arXiv 2506.09016) screens questions with a few responses first, prompt
curriculum learning (arXiv 2510.01135) asks a value model for rates near ½, prime-rl keeps pools of easy and hard ones.
Here nothing is sampled besides the training data.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .order import stream

START = 0.5
"""Pass rate of a question that was never asked."""


class Curriculum:
    """Pass rates of all training questions, and draws by them. A draw depends on the seed, its number and the rates."""

    def __init__(self, sizes: Sequence[int], rate: float, floor: float) -> None:
        """sizes: questions in each source. rate: share of a new group in a pass rate. floor: weight at rate 0 or 1."""
        self.sizes, self.rate, self.floor = tuple(sizes), rate, floor
        self.starts = np.cumsum([0, *sizes])
        self.pass_rates: NDArray[np.float64] = np.full(self.starts[-1], START)
        self.asked: NDArray[np.int64] = np.zeros(self.starts[-1], dtype=np.int64)
        """Number of times that each question was asked."""
        self.drawn: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        """Questions of the last draw."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each question, (Q,)."""
        return 4 * self.pass_rates * (1 - self.pass_rates) + self.floor

    def take(self, number: int, count: int, seed: int) -> list[tuple[int, int]]:
        """Return (source, index within it) of the questions of batch `number`: `count` different ones, by weight.

        Each is drawn with probability proportional to its weight among those left. Raises ValueError if there are fewer
        questions.
        """
        if count > len(self.pass_rates):
            raise ValueError(
                f"data.curriculum draws {count} different questions for a batch, and there are {len(self.pass_rates)}: "
                "lower rollout.prompts or rollout.gen_batch_size"
            )
        chances = self.weights / self.weights.sum()
        self.drawn = stream(seed, 2, number).choice(len(chances), count, replace=False, p=chances)
        source = np.searchsorted(self.starts, self.drawn, side="right") - 1
        return list(zip(source.tolist(), (self.drawn - self.starts[source]).tolist(), strict=True))

    def learn(self, shares: Sequence[float]) -> None:
        """Move the pass rates of the questions drawn last towards the shares of right responses in their groups."""
        self.pass_rates[self.drawn] += self.rate * (np.asarray(shares) - self.pass_rates[self.drawn])
        self.asked[self.drawn] += 1

    def metrics(self) -> dict[str, float]:
        """Return the share of questions asked so far, their mean pass rate, and the share of them near neither end."""
        known = self.pass_rates[self.asked > 0]
        if not len(known):
            return {}
        return {
            "curriculum/asked": len(known) / len(self.asked),
            "curriculum/pass_rate": float(known.mean()),
            "curriculum/between": float(((known > 0.1) & (known < 0.9)).mean()),
        }

    def state_dict(self) -> dict[str, Tensor]:
        return {"pass_rates": torch.tensor(self.pass_rates), "asked": torch.tensor(self.asked)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore `state_dict`. Raises ValueError if it is of another number of questions."""
        if len(state["asked"]) != len(self.asked):
            raise ValueError(
                f"the checkpoint has pass rates of {len(state['asked'])} questions, and the run has {len(self.asked)}: "
                "resume with the same data"
            )
        self.pass_rates, self.asked = state["pass_rates"].numpy().copy(), state["asked"].numpy().copy()
