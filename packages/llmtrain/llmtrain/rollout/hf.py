"""Rollouts with the policy itself: its prompts are read once, then responses to all of them are decoded together.

prompts (P) ─ left-pad ► read (P, L) ─ share among n ► decode (B, 1) up to T times ► packed

Shapes: P prompts, B = P·n sequences, T max_new_tokens, V vocabulary, N response tokens in total.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from ..kernels import HeadStats
from ..kernels.rows import token_statistics
from ..policy.attention import NAME, attend_by_sequence, longer_than_alike, longest_alike
from ..policy.compiled import eager
from ..policy.precision import casts, dtype_of_products, without_gradients
from ..sequences.rollouts import Rollouts
from .decoding import Decoding, capture_cuda
from .draw import invert, nucleus
from .plain_cache import PlainCache
from .rollout_engine import RolloutError
from .shared_cache import SharedCache, can_share

Way = Literal["captured", "shared", "repeated", "apart"]
"""Way of sampling responses together: with steps captured as CUDA graphs, over prompts that they share; the same with
steps as written; each with a copy of its prompt in transformers' own cache; or only those of one prompt length at a
time, for models whose cache or positions allow nothing else. See `sampling_proof`."""


class HFRollout:
    """Sampler for a transformers model; every draw comes from `generator`.

    Each sequence takes its own `max_new_tokens` uniforms from the generator, so its tokens do not depend on which
    other sequences share the batch or on when they end.

    Args:
        model: any causal language model with a KV cache.
        tokenizer: its tokenizer.
        max_new_tokens: upper limit for response tokens, eos included.
        temperature: divides the logits; 0 takes the most likely token and reports its log-probability at 1.
        generator: source of all randomness; restoring its state repeats the rollouts.
        stop_token_ids: tokens besides eos that end a response; they stay in the response, as eos does.
        max_num_seqs: sequences sampled together, grouped by prompt length; 0 samples all at once.
        top_p: draw only from the fewest tokens that together have this probability (nucleus sampling, Holtzman et al.
            2020); log-probabilities stay those of the full distribution.
        stats: compute all statistics of `HeadStats` for each token, at the sampling temperature, not only logp.
        way: how responses are sampled together; None for the fastest that the layers of the model allow.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_new_tokens: int,
        temperature: float = 1.0,
        generator: torch.Generator,
        stop_token_ids: Sequence[int] = (),
        max_num_seqs: int = 0,
        top_p: float = 1.0,
        stats: bool = False,
        way: Way | None = None,
    ):
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be at least 1; got {max_new_tokens}")
        if temperature < 0:
            raise ValueError(f"temperature must not be negative; got {temperature}")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1; got {top_p}")
        attend_by_sequence(model)
        self.model = model
        self.tokenizer = tokenizer
        self.max_new_tokens = max_new_tokens
        self.temperature = temperature
        self.top_p = top_p
        self.generator = generator
        self.max_num_seqs = max_num_seqs
        self.way = way or ways(model)[0]
        self.rows = len(HeadStats._fields) if stats else 1
        self.longest = longest_alike(model)
        self.eos_ids = torch.tensor(stop_ids(model, tokenizer, stop_token_ids), device=model.device)

    def generate(
        self,
        prompt_ids: Sequence[list[int]],
        n: int,
        mine: Sequence[int] | None = None,
        uniforms: Sequence[Tensor] | None = None,
    ) -> Rollouts:
        """Return `n` responses to each prompt, given as token ids.

        mine: indices of the prompts to answer here, None for all; other ranks answer the rest. Responses to a prompt do
        not depend on the rank.
        uniforms: numbers that draw the responses to each prompt, a row for each response and a column for each token
        that it may have; None: `n` rows and `max_new_tokens` columns from `generator`.

        Raises:
            ValueError: for no prompts, an empty prompt, or n < 1.
            RolloutError: if a drawn token has no finite log-probability, or rotations followed the longest sequence.
        """
        if not prompt_ids or n < 1:
            raise ValueError(f"generate needs at least one prompt and n >= 1; got {len(prompt_ids)} prompts, n={n}")
        if not all(prompt_ids):
            raise ValueError("a prompt has no tokens")
        prompt_ids = list(prompt_ids)
        chosen = list(range(len(prompt_ids)) if mine is None else mine)
        if uniforms is None:
            uniforms = list(self.uniforms((len(prompt_ids), n, self.max_new_tokens)))
        if not chosen:
            nothing = torch.empty(0, dtype=torch.long)
            stats = torch.empty(self.rows, 0) if self.rows > 1 else None
            return Rollouts(prompt_ids, nothing, nothing, torch.empty(0), nothing, nothing.bool(), stats=stats)
        was_training = self.model.training
        self.model.eval()
        try:
            with eager(), without_gradients(self.model):
                groups = self._together(chosen, prompt_ids, n)
                parts = [self._decode([prompt_ids[i] for i in some], [uniforms[i] for i in some]) for some in groups]
        finally:
            self.model.train(was_training)
        answered = [i for some in groups for i in some]
        owner = torch.tensor(answered).repeat_interleave(torch.tensor([len(uniforms[i]) for i in answered]))
        order = owner.argsort(stable=True)
        columns = zip(*parts, strict=True)
        tokens_BT, stats_BTR, lengths, finished_B = (torch.cat([x.cpu() for x in xs])[order] for xs in columns)
        kept = torch.arange(self.max_new_tokens) < lengths[:, None]
        if not bool(stats_BTR[kept].isfinite().all()):
            raise RolloutError("the policy gives tokens a log-probability of NaN: its weights or states are not finite")
        # Indexing outside inference mode makes ordinary tensors, which autograd may save.
        return Rollouts(
            prompt_ids=prompt_ids,
            response_ids=tokens_BT[kept],
            response_lengths=lengths.clone(),
            logp=stats_BTR[kept][:, 0],
            prompt_index=owner[order],
            finished=finished_B.clone(),
            stats=stats_BTR[kept].T if self.rows > 1 else None,
        )

    def _together(self, chosen: list[int], prompt_ids: list[list[int]], n: int) -> list[list[int]]:
        """Return the chosen prompts in groups that are answered together."""
        size = max(1, self.max_num_seqs // n) if self.max_num_seqs else len(chosen)
        if self.way == "apart":
            groups = defaultdict(list)
            for i in chosen:
                groups[len(prompt_ids[i])].append(i)
            return [group[i : i + size] for group in groups.values() for i in range(0, len(group), size)]
        by_length = sorted(chosen, key=lambda i: len(prompt_ids[i])) if size < len(chosen) else chosen
        return [by_length[i : i + size] for i in range(0, len(chosen), size)]

    def _decode(self, prompt_ids: list[list[int]], each: list[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return tokens (B, T), their statistics (B, T, R), lengths (B), finished (B), given uniforms per prompt."""
        device = self.model.device
        counts = torch.tensor([len(part) for part in each])
        limits = torch.tensor([part.shape[1] for part in each]).repeat_interleave(counts)
        if self.way == "apart":
            prompt_ids = [ids for ids, count in zip(prompt_ids, counts.tolist(), strict=True) for _ in range(count)]
            counts = torch.ones(len(prompt_ids), dtype=torch.long)
        lengths = torch.tensor([len(ids) for ids in prompt_ids])
        memory = self._memory(lengths)
        logits = self._read(prompt_ids, lengths, memory).repeat_interleave(counts.to(device), 0)
        memory.share(counts, self.max_new_tokens - 1)
        spare = self.max_new_tokens
        decoding = Decoding(
            lambda token, position: self._forward(token, memory.mask, position, memory),
            self._sample,
            memory,
            position=lengths.repeat_interleave(counts).to(device),
            uniforms=torch.cat([nn.functional.pad(part, (0, spare - part.shape[1])) for part in each]).to(device),
            limits=limits.to(device),
            ends=self.eos_ids,
            statistics=self.rows,
            capture=capture_cuda if self.way == "captured" else None,
        )
        drawn = decoding.run(logits)
        if self.longest and (read := int(lengths.max()) + drawn - 1) > self.longest:
            raise RolloutError(longer_than_alike(self.model, read, self.longest))
        return decoding.tokens, decoding.stats, decoding.lengths, decoding.finished

    def _memory(self, lengths: Tensor) -> SharedCache | PlainCache:
        """Return an empty cache for prompts of these lengths (P), on the CPU."""
        config, device = self.model.config, self.model.device
        # As attention under autocast would cast them.
        stored_as = dtype_of_products(device.type, torch.bfloat16) if casts(self.model) else None
        if self.way in ("captured", "shared"):
            return SharedCache(config, lengths, device, stored_as, captured=self.way == "captured")
        return PlainCache(config, lengths, device, may_leave=self.way == "repeated")

    def _read(self, prompt_ids: list[list[int]], lengths: Tensor, memory: SharedCache | PlainCache) -> Tensor:
        """Return next-token logits (P, V) of prompts."""
        device, width = self.model.device, int(lengths.max())
        # The left padding is masked; the tokenizer may have no pad token.
        ids = torch.tensor([[0] * (width - len(ids)) + ids for ids in prompt_ids])
        mask = torch.arange(width) >= (width - lengths)[:, None]
        positions = (mask.cumsum(1) - 1).clamp_min(0)
        given = mask.long().to(device) if bool((lengths < width).any()) else None
        return self._forward(ids.to(device), given, positions.to(device), memory)

    def _forward(self, ids: Tensor, mask: Tensor | None, positions: Tensor, cache: DynamicCache) -> Tensor:
        """Return logits of the last position (B, V)."""
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1]

    def uniforms(self, shape: tuple[int, ...], seed: int | None = None) -> Tensor:
        """Return one uniform number per prompt, sample and step (P, n, T); zeros for greedy decoding.

        seed: seeds the generator first.
        """
        if self.temperature == 0:
            return torch.zeros(shape)
        if seed is not None:
            self.generator.manual_seed(seed)
        # float32 cumulative sums and 24-bit uniforms never reach tokens of small probability.
        return torch.rand(shape, generator=self.generator, device=self.generator.device, dtype=torch.float64)

    def _sample(self, logits_BV: Tensor, uniform_B: Tensor) -> tuple[Tensor, Tensor]:
        """Return tokens (B) by inversion of the cumulative distribution, and their statistics (B, R), logp first."""
        logits = logits_BV.float() / (self.temperature or 1.0)
        logp = logits.log_softmax(-1)
        if self.temperature == 0:
            token = logits.argmax(-1)
        else:
            token = nucleus(logp, uniform_B, self.top_p) if self.top_p < 1 else invert(logp.exp(), uniform_B)
        if self.rows > 1:
            return token, token_statistics(logits, token).T
        return token, logp.gather(1, token[:, None])


def ways(model: PreTrainedModel) -> list[Way]:
    """Return the ways in which a model may be sampled as far as its layers tell, the fastest first."""
    found: list[Way] = ["repeated", "apart"]
    if model.config._attn_implementation == NAME and can_share(model.config):
        found.insert(0, "shared")
        if model.device.type == "cuda" and longest_alike(model) is None:
            found.insert(0, "captured")
    return found


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, more: Sequence[int] = ()) -> list[int]:
    """Return all tokens that end a response: the tokenizer's eos, eos of the model's generation settings, and `more`.

    Raises:
        ValueError: if there is no eos, or the model has no token for an id in `more`.
    """
    known = model.config.get_text_config().vocab_size
    if strange := [i for i in more if not 0 <= i < known]:
        raise ValueError(f"stop_token_ids {strange[0]} is not a token of the model; its ids are 0 to {known - 1}")
    ids = {tokenizer.eos_token_id}
    config = model.generation_config
    declared = config.eos_token_id if config is not None else None
    ids.update(declared if isinstance(declared, list) else [declared])
    ids.discard(None)
    if not ids:
        raise ValueError("neither tokenizer nor model names an eos token")
    return sorted({*ids, *more})
