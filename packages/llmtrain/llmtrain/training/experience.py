"""Experience: scored responses with all that an update needs.

scored responses ► statistics under the policy ► log π_ref ► reward model ► Experience ► learner
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from entrostat import Controller, Tokens, get_advantage
from entrostat.numbers.support import Support

from ..kernels import HeadStats, RestrictedStats
from ..policy.engine import Engine
from ..policy.engines import make_engine, place
from ..policy.model import load
from ..policy.policy import Policy
from ..process.clock import Clock
from ..process.ranks import Ranks
from ..sequences.batch import Batch
from ..sequences.collected import Collected
from ..sequences.ragged import starts
from ..settings.config import TrainConfig
from .implicit_reward import ImplicitReward, optim_of


@dataclass(frozen=True, eq=False)
class Experience:
    """Scored rollout, or a mini-batch of it: B sequences with N response tokens."""

    batch: Batch
    stats: HeadStats
    """Statistics before the first update, (N,) each; a stale rollout was sampled by an earlier policy."""
    reward: Tensor
    """Shaped rewards, (B,)."""
    advantage: Tensor
    """Advantages of sequences, (B,)."""
    group: Tensor
    """Prompt index of each sequence, (B,)."""
    sequence: Tensor
    """Index of each sequence in the rollout, (B,)."""
    rollout_logp: Tensor | None = None
    """log π of the tokens as reported by the rollout engine, (N,)."""
    token_advantage: Tensor | None = None
    """Advantages of tokens, (N,), if they differ within a sequence."""
    ref_logp: Tensor | None = None
    """log π_ref of the tokens, (N,)."""
    proxy_logp: Tensor | None = None
    """log π of the tokens before the first update, restricted to the controller's `proxy`, (N,)."""
    truncated_entropy: Tensor | None = None
    """Entropy of the policy before the first update on the controller's `support`, (N,)."""
    trained: Tensor | None = None
    """Mask (B,) of the sequences that enter the loss; None for all."""
    from_rollout: bool = False
    """True if importance ratios are relative to `rollout_logp` instead of `stats.logp`."""
    sampled: bool = False
    """True if `stats` were computed while sampling: only the first update tells if they are the policy's."""

    def select(self, sequences: Tensor) -> "Experience":
        """Return the experience of some of the sequences."""
        index = self.batch.response_index(sequences).to(self.stats.logp.device)
        return Experience(
            self.batch.select(sequences),
            HeadStats(*(x[index] for x in self.stats)),
            self.reward[sequences],
            self.advantage[sequences],
            self.group[sequences],
            self.sequence[sequences],
            None if self.rollout_logp is None else self.rollout_logp[index],
            None if self.token_advantage is None else self.token_advantage[index],
            None if self.ref_logp is None else self.ref_logp[index],
            None if self.proxy_logp is None else self.proxy_logp[index],
            None if self.truncated_entropy is None else self.truncated_entropy[index],
            None if self.trained is None else self.trained[sequences],
            self.from_rollout,
            self.sampled,
        )

    @property
    def owner(self) -> Tensor:
        """Sequence index (0 to B − 1) of each token, (N,)."""
        return torch.repeat_interleave(torch.arange(len(self.batch)), self.batch.response_lengths)

    def tokens(self, current: HeadStats | None) -> Tokens:
        """Return the tokens as controllers see them; `current`: statistics now, None if the policy has not moved."""
        now, owner, device = current or self.stats, self.owner, self.stats.logp.device
        position = torch.arange(len(owner)) - starts(self.batch.response_lengths)[owner]
        return Tokens(
            logp=now.logp,
            old_logp=self.rollout_logp if self.from_rollout else self.stats.logp,
            rollout_logp=self.rollout_logp,
            ref_logp=self.ref_logp,
            proxy_logp=self.proxy_logp,
            truncated_entropy=self.truncated_entropy,
            advantage=self.advantage[owner].to(device) if self.token_advantage is None else self.token_advantage,
            reward=self.reward[owner].to(device),
            entropy=now.entropy,
            old_entropy=self.stats.entropy,
            s2=now.s2,
            s2l=now.s2l,
            s2ll=now.s2ll,
            seq_id=self.sequence[owner].to(device),
            group_id=self.group[owner].to(device),
            position=position.to(device),
        )


PRIME = "prime"
"""Folder of the implicit reward model in a checkpoint."""


class Annotator:
    """Builder of experience from responses; holds the reference and reward models."""

    def __init__(
        self,
        config: TrainConfig,
        policy: Policy,
        ranks: Ranks,
        clock: Clock,
        controller: Controller,
        reference: Path | None,
        checkpoint: Path | None = None,
    ) -> None:
        """controller: its `proxy`, and its `support` if it needs `truncated_entropy`, cost a forward pass each.

        reference: folder of the reference policy, if one is needed. checkpoint: folder to resume from.
        """
        self.config, self.policy, self.ranks, self.clock = config, policy, ranks, clock
        self.controller = controller
        self.prime: ImplicitReward | None = None
        self.reference: Policy | None = None
        if reference:
            self.reference = self._policy_of(reference)
            place(config, self.reference)
        if config.advantage == "prime":
            assert reference is not None
            model = self._policy_of(checkpoint / PRIME if checkpoint else reference, trains=True)
            if config.engine.name == "torch":
                model.to(config.device)
            engine = make_engine(config, model, optim_of(config.prime, config.optim))
            self.prime = ImplicitReward(model, engine, config.prime.beta, config.optim.micro_batch_tokens)

    def _policy_of(self, folder: Path, trains: bool = False) -> Policy:
        """Return a policy other than the trained one, loaded from a folder."""
        config = self.config
        trusted = config.model.trust_remote_code
        model, _ = load(folder, dtype=self.policy.model.dtype, device=config.device, trust_remote_code=trusted)
        model = model.train(trains).requires_grad_(trains)
        return Policy(model, config.rollout.temperature, layout=config.optim.layout)

    def experience(self, found: Collected) -> tuple[Experience, dict[str, float]]:
        """Return experience of scored responses, and metrics. A reward model is trained on the verdicts as well."""
        rollouts, config = found.rollouts, self.config
        batch = Batch.of(rollouts)
        with self.clock.phase("forward"):
            if rollouts.stats is None:
                stats = self.policy.all_stats(batch, config.optim.micro_batch_tokens, self.ranks)
            else:
                stats = HeadStats(*rollouts.stats.to(self.policy.model.device))
            support = self.controller.support if "truncated_entropy" in self.controller.needs else None
            proxy, inside = (self._restricted(batch, within) for within in (self.controller.proxy, support))
        ref_logp = None
        if self.reference is not None:
            with self.clock.phase("reference"):
                ref_logp = self.reference.all_stats(batch, config.optim.micro_batch_tokens, self.ranks).logp
        made = Experience(
            batch,
            stats,
            found.shaped,
            found.advantage,
            group=rollouts.prompt_index,
            sequence=found.sequence,
            rollout_logp=rollouts.logp.to(stats.logp),
            ref_logp=ref_logp,
            proxy_logp=proxy.logp if proxy else None,
            truncated_entropy=inside.entropy if inside else None,
            trained=self._trained(found),
            from_rollout=config.rollout.old_logp == "rollout",
            sampled=rollouts.stats is not None,
        )
        return self._with_process_rewards(made, found)

    def _restricted(self, batch: Batch, within: Support | None) -> RestrictedStats | None:
        """Return statistics of the policy within a support; None if there is no support."""
        if within is None:
            return None
        return self.policy.all_restricted(batch, within, self.config.optim.micro_batch_tokens, self.ranks)

    def _trained(self, found: Collected) -> Tensor | None:
        """Return the mask of sequences that enter the loss; None for all."""
        if found.dropped:
            return torch.zeros(len(found.reward), dtype=torch.bool)
        return found.rollouts.finished if self.config.reward.overlong_filter else None

    def _with_process_rewards(self, made: Experience, found: Collected) -> tuple[Experience, dict[str, float]]:
        """Add token advantages from the implicit reward model, then train that model on the verdicts."""
        if self.prime is None:
            return made, {}
        assert made.ref_logp is not None
        with self.clock.phase("reward model"):
            prm = self.prime.model.all_stats(made.batch, self.config.optim.micro_batch_tokens, self.ranks).logp
            reward, group, owner = (x.to(prm.device) for x in (made.reward.to(prm), made.group, made.owner))
            told = {"prm_logp": prm, "ref_logp": made.ref_logp, "response": owner, "beta": self.config.prime.beta}
            advantage = get_advantage("prime")(reward, group, **told)
            metrics = {} if found.dropped else self.prime.learn(made.batch, made.ref_logp, found.reward)
        return replace(made, token_advantage=advantage), metrics

    @property
    def learning(self) -> dict[str, tuple[Policy, Engine]]:
        """Models trained besides the policy, and their engines, by folder in a checkpoint."""
        return {PRIME: (self.prime.model, self.prime.engine)} if self.prime else {}

    def state_dict(self) -> dict[str, Any]:
        return {name: engine.state_dict() for name, (_, engine) in self.learning.items()}

    def load_state_dict(self, state: Mapping[str, Any], checkpoint: Path) -> None:
        """Restore `state` from `state_dict`; checkpoint: folder with the state and the models."""
        for name, (_, engine) in self.learning.items():
            engine.load_state_dict(state[name])
            engine.load_shards(checkpoint / name)
