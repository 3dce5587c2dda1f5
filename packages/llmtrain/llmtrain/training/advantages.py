"""Advantages of scored responses: the function that `advantage` names, with what it needs beyond rewards and groups.

rewards ► advantage ◄ lengths | terms of the reward | reward of the greedy response | mean reward of the source
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from entrostat import get_advantage
from entrostat.advantages import advantage_settings, advantage_uses, rae_baseline

from ..process.ranks import Ranks
from ..settings.config import TrainConfig
from ..tasks.rewards import used, weights
from .scored import Scored

OF_TOKENS = ("prime", "optimal_token")
"""Advantages with a number for each token, which the annotator computes; until then a response has that of `rloo`."""
SUPPLIED = ("length", "rewards", "greedy", "source", "baseline")
"""Inputs beyond rewards and groups that a run has for an advantage of responses."""


def of_tokens(name: str) -> bool:
    """Return True if an advantage has a number for each token."""
    return name.partition(" ")[0] in OF_TOKENS


def needs_greedy(config: TrainConfig) -> bool:
    """Return True if the advantage needs a greedy response to each prompt."""
    return "greedy" in advantage_uses(config.advantage)


class Advantages:
    """Advantages of a run's responses, whose groups are whole on a rank. A checkpoint needs `state_dict`."""

    def __init__(self, config: TrainConfig, ranks: Ranks) -> None:
        self.config, self.ranks = config, ranks
        self.name = "rloo" if of_tokens(config.advantage) else config.advantage
        self.function = get_advantage(self.name, ranks.reduce)
        self.uses = advantage_uses(self.name)
        self.baselines: dict[str, float] = {}
        """Running mean of the rewards of each source, for `rae`."""

    @property
    def by_term(self) -> bool:
        """True if each term of the reward is looked at by itself."""
        return "rewards" in self.uses

    def of(self, scored: Scored, reward: Tensor, sequence: Tensor, learn: bool = True) -> Tensor:
        """Return advantages, (B,), of this rank's rewards to train on; all ranks call this.

        sequence: index of each response among those of all ranks. learn: let running means take these rewards.
        """
        told: dict[str, Tensor] = {}
        if "length" in self.uses:
            told["length"] = scored.rollouts.response_lengths
        if self.by_term:
            told |= {"rewards": self._terms(scored.scores), "weight": self._weights()}
        if "greedy" in self.uses:
            assert scored.greedy is not None
            told["greedy"] = scored.greedy
        if "source" in self.uses:
            return self._in_turn(scored, reward, sequence, learn)
        place = self.config.device  # device of collectives
        return self.function(reward.to(place), scored.rollouts.prompt_index.to(place), **told).cpu()

    def _terms(self, scores: Tensor) -> Tensor:
        """Return the terms of the reward, (m, B), the verdict first."""
        return scores[[True, *used(self.config.reward)]]

    def _weights(self) -> Tensor:
        """Return what each term counts, (m,): its scale is lost where it is normalised."""
        return torch.tensor(weights(self.config.reward))[[True, *used(self.config.reward)]].abs()

    def _in_turn(self, scored: Scored, reward: Tensor, sequence: Tensor, learn: bool) -> Tensor:
        """Return advantages over running means: the responses of all ranks count in their order."""
        sources = [scored.sources[prompt] for prompt in scored.rollouts.prompt_index.tolist()]
        everyone = self.ranks.gather(list(zip(sequence.tolist(), reward.tolist(), sources, strict=True)))
        everyone.sort()
        names = sorted(self.baselines.keys() | {source for *_, source in everyone})
        rewards = torch.tensor([reward for _, reward, _ in everyone], dtype=reward.dtype)
        source = torch.tensor([names.index(source) for *_, source in everyone])
        baseline = torch.tensor([self.baselines.get(name, 0.0) for name in names], dtype=torch.float64)
        place = {number: i for i, (number, *_) in enumerate(everyone)}
        found = self.function(rewards, source, source=source, baseline=baseline)
        if learn:
            after = rae_baseline(rewards, source, baseline, **advantage_settings(self.name))
            self.baselines = dict(zip(names, after.tolist(), strict=True))
        return found[[place[number] for number in sequence.tolist()]]

    def metrics(self) -> dict[str, float]:
        """Return the running means, by source."""
        return {f"baseline/{name or 'all'}": value for name, value in self.baselines.items()}

    def state_dict(self) -> dict[str, float]:
        return dict(self.baselines)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.baselines = {str(name): float(value) for name, value in state.items()}
