"""Rollouts with the policy itself: one prefill, then one decode step for all unfinished sequences at a time.

prompts (P) ─ left-pad ► prefill (P, L) ─ repeat n ► [sample ► record ► drop finished rows ► forward (B, 1)]* ► packed

Shapes: P prompts, B = P·n sequences, T max_new_tokens, V vocabulary, N response tokens in total.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from ..kernels import HeadStats
from ..kernels.rows import token_statistics
from ..policy.attention import attend_by_sequence
from ..policy.compiled import eager
from ..policy.precision import casts, without_gradients
from ..sequences.rollouts import Rollouts
from .roomy_cache import make_cache

DROP_BELOW = 0.8
"""Share of unfinished rows below which finished rows leave the batch; each removal copies the cache."""
BLOCK = 256
"""Tokens whose probabilities are added up before the cumulative sum, which is slow: √V at V = 65,536."""


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
        together: prompts of different lengths share a pass, and a prompt is read once for all of its responses. False
            for models whose cache or positions do not allow it, see `sampling_proof`.
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
        together: bool = True,
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
        self.together = together
        self.rows = len(HeadStats._fields) if stats else 1
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
                together = self._together(chosen, prompt_ids, n)
                parts = [self._decode([prompt_ids[i] for i in some], [uniforms[i] for i in some]) for some in together]
        finally:
            self.model.train(was_training)
        answered = [i for some in together for i in some]
        owner = torch.tensor(answered).repeat_interleave(torch.tensor([len(uniforms[i]) for i in answered]))
        order = owner.argsort(stable=True)
        columns = zip(*parts, strict=True)
        tokens_BT, stats_BTR, lengths, finished_B = (torch.cat([x.cpu() for x in xs])[order] for xs in columns)
        kept = torch.arange(self.max_new_tokens) < lengths[:, None]
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
        if not self.together:
            groups = defaultdict(list)
            for i in chosen:
                groups[len(prompt_ids[i])].append(i)
            return [group[i : i + size] for group in groups.values() for i in range(0, len(group), size)]
        by_length = sorted(chosen, key=lambda i: len(prompt_ids[i])) if size < len(chosen) else chosen
        return [by_length[i : i + size] for i in range(0, len(chosen), size)]

    def _decode(self, prompt_ids: list[list[int]], each: list[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return tokens (B, T), their statistics (B, T, R), lengths (B), finished (B), given uniforms per prompt."""
        device = self.model.device
        counts = torch.tensor([len(part) for part in each], device=device)
        limits = torch.tensor([part.shape[1] for part in each], device=device).repeat_interleave(counts)
        logits, cache, mask, position = self._prefill(prompt_ids, counts)
        rows = torch.arange(len(position), device=device)
        shape = (len(rows), self.max_new_tokens)
        uniforms = torch.cat([nn.functional.pad(part, (0, shape[1] - part.shape[1])) for part in each]).to(device)
        tokens = torch.zeros(shape, dtype=torch.long, device=device)
        stats = torch.zeros((*shape, self.rows), dtype=torch.float32, device=device)
        lengths = limits.clone()
        finished = torch.zeros(len(rows), dtype=torch.bool, device=device)
        for t in range(self.max_new_tokens):
            token, found = self._sample(logits, uniforms[rows, t])
            # A finished row still in the batch overwrites only entries past its length.
            tokens[rows, t], stats[rows, t] = token, found
            ended = torch.isin(token, self.eos_ids) & ~finished[rows] & (limits[rows] > t)
            lengths[rows[ended]] = t + 1
            finished[rows[ended]] = True
            open_ = ~finished[rows] & (limits[rows] > t + 1)
            n_open = int(open_.sum())
            if n_open == 0:
                break
            if self.together and n_open < DROP_BELOW * len(rows):
                keep = open_.nonzero()[:, 0]
                cache.batch_select_indices(keep)
                rows, token, position = rows[keep], token[keep], position[keep]
                mask = None if mask is None else mask[keep]
            if mask is not None:
                mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
            logits = self._forward(token[:, None], mask, position[:, None], cache)
            position = position + 1
        return tokens, stats, lengths, finished

    def _prefill(
        self, prompt_ids: list[list[int]], counts: Tensor
    ) -> tuple[Tensor, DynamicCache, Tensor | None, Tensor]:
        """Return next-token logits (B, V), cache, attention mask (B, L) or None without padding, next position (B)."""
        device = self.model.device
        if not self.together:
            prompt_ids = [ids for ids, count in zip(prompt_ids, counts.tolist(), strict=True) for _ in range(count)]
            counts = torch.ones(len(prompt_ids), dtype=torch.long, device=device)
        lengths = torch.tensor([len(ids) for ids in prompt_ids], device=device)
        width = int(lengths.max())
        # The left padding is masked; the tokenizer may have no pad token.
        ids = torch.tensor([[0] * (width - len(ids)) + ids for ids in prompt_ids], device=device)
        mask = torch.arange(width, device=device) >= (width - lengths)[:, None]
        positions = (mask.cumsum(1) - 1).clamp_min(0)
        padded = bool((lengths < width).any())
        stored_as = torch.bfloat16 if casts(self.model) else None  # as attention under autocast would cast them
        cache = make_cache(self.model.config, self.max_new_tokens if self.together else 0, stored_as)
        logits = self._forward(ids, mask.long() if padded else None, positions, cache)
        if not self.together:
            return logits, cache, None, lengths
        repeats: Any = counts  # typed int, but a number for each prompt is repeated as well
        cache.batch_repeat_interleave(repeats)
        mask_BL = mask.long().repeat_interleave(counts, dim=0) if padded else None
        return logits.repeat_interleave(counts, dim=0), cache, mask_BL, lengths.repeat_interleave(counts)

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
            token = _nucleus(logp, uniform_B, self.top_p) if self.top_p < 1 else _invert(logp.exp(), uniform_B)
        if self.rows > 1:
            return token, token_statistics(logits, token).T
        return token, logp.gather(1, token[:, None])


def _invert(weight_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """Return indices (B) drawn in proportion to weights, by inversion of their cumulative sum in float64.

    The first sum is over blocks, the second over the tokens of the drawn block.
    """
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
    before = nn.functional.pad(cdf, (1, 0)).gather(-1, drawn)
    rest = (aim - before) / weight_BK.gather(-1, drawn)
    return drawn[:, 0], rest[:, 0].clamp(0, 1)


def _nucleus(logp_BV: Tensor, uniform_B: Tensor, top_p: float) -> Tensor:
    """Return tokens (B) drawn from the fewest whose probabilities add up to `top_p`."""
    logp, tokens = logp_BV.sort(dim=-1, descending=True, stable=True)
    p = logp.double().exp()
    inside = p.cumsum(-1) - p < top_p
    rank = torch.minimum(_invert(torch.where(inside, p, 0.0), uniform_B), inside.sum(-1) - 1)
    return tokens.gather(1, rank[:, None])[:, 0]


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
