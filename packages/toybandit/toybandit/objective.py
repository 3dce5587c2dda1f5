"""Advantage of a simulation, with what it needs beyond rewards and groups: the policy, a greedy response, a mean."""

from dataclasses import replace

import torch
from torch import Tensor

from entrostat.advantages import Advantage, Groups, advantage_needs, advantage_settings, get_advantage, rae_baseline

from .environments import Environment
from .luck import Luck
from .policy import Policy, per_token, token_logp
from .problem import with_label_noise
from .rollout import Rollout, groups_of

OF_ONE_TOKEN = ("greedy", "logp", "s2", "response")
"""Inputs that are known only where a response is one token."""
KNOWN = (*OF_ONE_TOKEN, "length", "rewards", "source", "baseline")


class Objective:
    """Advantage that an environment names. All responses have one source, and a verdict is their only reward."""

    def __init__(self, environment: Environment, luck: Luck, runs: int) -> None:
        """Raises ValueError if the advantage needs what a simulation has not."""
        self.environment, self.luck, self.name = environment, luck, environment.advantage or ""
        self.function = get_advantage(self.name)
        self.needs = advantage_needs(self.name)
        known = KNOWN if environment.length == 1 else set(KNOWN).difference(OF_ONE_TOKEN)
        if missing := [need for need in self.needs if need not in known]:
            where = "" if environment.length == 1 else " where responses have several tokens"
            raise ValueError(f"advantage {self.name!r} needs {', '.join(missing)}; a simulation has none{where}")
        self.baseline = torch.zeros(runs, 1, dtype=torch.float64)
        """Running mean of the rewards of each run, for `rae`."""

    @property
    def of_rewards(self) -> Advantage:
        """The advantage, if it needs rewards and groups alone; else the rewards, of which `applied` makes it."""
        return rewards_alone if self.needs else self.function

    def applied(self, rollout: Rollout, policy: Policy, success: Tensor, step: int) -> Rollout:
        """Return a rollout of `of_rewards` with its advantages. success: probability of a reward, (R, S, K)."""
        if not self.needs:
            return rollout
        length, noise = self.environment.length, self.environment.label_noise
        reward = rollout.reward[..., ::length]
        responses = reward[0].numel()
        told: dict[str, Tensor] = {}
        if "greedy" in self.needs:
            best = success.gather(-1, policy.logits.argmax(-1, keepdim=True))
            greedy = self.luck("greedy", step)[..., :1] < with_label_noise(best, noise)
            told["greedy"] = greedy.to(reward).expand(reward.shape).flatten(1)
        if "s2" in self.needs:
            told["logp"], told["s2"] = token_logp(policy, rollout.arm), per_token(policy.stats.s2, rollout.arm)
            told["response"] = torch.arange(responses)
        if "length" in self.needs:
            told["length"] = torch.full((responses,), length)
        if "rewards" in self.needs:
            told["rewards"] = reward.flatten(1)[None]
        if "source" in self.needs:
            source, before = torch.zeros(responses, dtype=torch.int64), self.baseline
            told |= {"source": source, "baseline": before}
            self.baseline = rae_baseline(reward.flatten(1), source, before, **advantage_settings(self.name))
        value = self.function(reward.flatten(1), groups_of(*reward.shape[1:], reward.device), **told)
        return replace(rollout, advantage=value.reshape(reward.shape).repeat_interleave(length, -1))


def rewards_alone(reward: Tensor, group_id: Groups) -> Tensor:
    return reward
