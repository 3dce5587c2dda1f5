"""Annotator: makes experience of scored responses.

scored responses ► statistics under the policy ► log π_ref ► reward model ► Experience ► learner
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from entrostat import Controller, get_advantage
from entrostat.numbers.support import Support

from ..kernels import HeadStats, RestrictedStats
from ..policy.engine import Engine
from ..policy.engines import make_engine, place
from ..policy.lora import whole_weights
from ..policy.model import load
from ..policy.policy import Policy
from ..process.clock import Clock
from ..process.ranks import Ranks
from ..sequences.batch import Batch
from ..sequences.collected import Collected
from ..settings.config import TrainConfig
from .experience import Experience
from .implicit_reward import ImplicitReward, optim_of

PRIME = "prime"
"""Folder of the implicit reward model in a checkpoint."""
REFERENCE = "reference"
"""Folder of the reference policy in a checkpoint, once it was reset; before, a run reads the model it began with."""


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
        self.resets = bool(checkpoint and (checkpoint / REFERENCE).is_dir())
        """True once the reference is no longer the model in `reference`."""
        if reference:
            self.reference = self._policy_of(checkpoint / REFERENCE if checkpoint and self.resets else reference)
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
        return Policy(model, self.policy.temperature, layout=config.optim.layout)

    def set_temperature(self, temperature: float) -> None:
        """Let all policies be those of this temperature from now on."""
        others = [self.reference, self.prime.model if self.prime else None]
        for policy in (self.policy, *others):
            if policy is not None:
                policy.temperature = temperature

    @torch.no_grad()
    def reset_reference(self, step: int) -> bool:
        """Copy the policy's weights into the reference if the controller asks for it before this step; return if so.

        Updates of LoRA are added to the weights that they belong to.
        """
        if self.reference is None or not bool(self.controller.resets_reference(step).all()):
            return False
        held = dict(self.reference.model.named_parameters())
        for name, value in whole_weights(self.policy.model):
            held[name].copy_(value)
        self.resets = True
        return True

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
        rollout_logp = rollouts.logp.to(stats.logp)
        made = Experience.of(
            batch,
            stats,
            found.shaped,
            found.advantage,
            rollouts.prompt_index,
            found.sequence,
            old_logp=rollout_logp if config.rollout.old_logp == "rollout" or config.rollout.train_at_one else None,
            trained=self._trained(found),
            sampled=rollouts.stats is not None,
            rollout_logp=rollout_logp,
            ref_logp=ref_logp,
            proxy_logp=proxy.logp if proxy else None,
            truncated_entropy=inside.entropy if inside else None,
        )
        if config.advantage == "optimal_token":
            made = with_token_baseline(made, found.shaped)
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
        ref_logp = made.before.get("ref_logp")
        with self.clock.phase("reward model"):
            prm = self.prime.model.all_stats(made.batch, self.config.optim.micro_batch_tokens, self.ranks).logp
            reward, group, owner = (x.to(prm.device) for x in (found.shaped.to(prm), made.group, made.owner))
            told = {"prm_logp": prm, "ref_logp": ref_logp, "response": owner, "beta": self.config.prime.beta}
            advantage = get_advantage("prime")(reward, group, **told)
            metrics = {} if found.dropped else self.prime.learn(made.batch, ref_logp, found.reward)
        return replace(made, before=replace(made.before, advantage=advantage)), metrics

    @property
    def learning(self) -> dict[str, tuple[Policy, Engine]]:
        """Models trained besides the policy, and their engines, by folder in a checkpoint."""
        return {PRIME: (self.prime.model, self.prime.engine)} if self.prime else {}

    @property
    def kept(self) -> dict[str, Policy]:
        """Models that are not trained but differ from those that the run began with, by folder in a checkpoint."""
        return {REFERENCE: self.reference} if self.reference is not None and self.resets else {}

    def state_dict(self) -> dict[str, Any]:
        return {name: engine.state_dict() for name, (_, engine) in self.learning.items()}

    def load_state_dict(self, state: Mapping[str, Any], checkpoint: Path) -> None:
        """Restore `state` from `state_dict`; checkpoint: folder with the state and the models."""
        for name, (_, engine) in self.learning.items():
            engine.load_state_dict(state[name])
            engine.load_shards(checkpoint / name)


def with_token_baseline(made: Experience, reward: Tensor) -> Experience:
    """Return experience with the advantages of `optimal_token`, whose baseline is of the policy that it was made by.

    reward: of each sequence, (B,).
    """
    logp, s2 = made.before.get("logp"), made.before.get("s2")
    reward, group, owner = reward.to(logp), made.group.to(logp.device), made.owner.to(logp.device)
    advantage = get_advantage("optimal_token")(reward, group, logp=logp, s2=s2, response=owner)
    return replace(made, before=replace(made.before, advantage=advantage))
