"""Layouts of sequences in one forward pass through the body of the model.

    padded    one row per sequence, padded on the right
    packed    one row of all sequences, without padding; attention does not cross the start of a sequence
    shared    one row per prompt: the prompt once, then its responses, which do not attend to each other

The last token of a sequence is left out, because it predicts nothing. A layout changes speed and memory, but no
statistic. `shared` needs the least work if prompts are long or groups large; its attention mask is dense, so use it for
rows of up to a few thousand tokens. `packed` has a mask only in layers with a limited window, see
`llmtrain.policy.attention`.
"""

import heapq
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .batch import Batch
from .ragged import ranges, starts


class Layout(NamedTuple):
    """Inputs of the body, and places of the hidden states that predict the n response tokens, in their order."""

    ids: Tensor
    """Token ids (rows, width)."""
    position: Tensor | None
    """Position of each token in its sequence (rows, width); None to count from 0 in each row."""
    mask: Tensor | None
    """Attention mask, bool (rows, 1, width, width), True if a position attends to another; None for causal."""
    row: Tensor
    column: Tensor
    """Row and column of each of these states, (n,) each."""
    lengths: Tensor | None = None
    """Tokens of each sequence of a packed row, (b,), or of every row, (1,); None where a mask is needed."""


def fed(batch: Batch, sequences: Tensor) -> Tensor:
    """Return the number of response tokens that the model reads, (b,): all except the last."""
    return (batch.response_lengths[sequences] - 1).clamp(min=0)


# Padded ---------------------------------------------------------------------------------------------------------------


def padded(batch: Batch, sequences: Tensor) -> Layout:
    prompts, responses = batch.prompt_lengths[sequences], batch.response_lengths[sequences]
    width = int((prompts + fed(batch, sequences)).max())
    rows = torch.repeat_interleave(torch.arange(len(sequences)), responses)
    return Layout(
        batch.padded(sequences)[:, :width], None, None, rows, ranges(prompts - 1, responses), torch.tensor([width])
    )


def padded_slices(batch: Batch, sequences: Tensor, budget: int) -> list[Tensor]:
    """Split `sequences` into slices of similar length whose padded size is at most `budget` tokens.

    A sequence longer than the budget gets a slice of its own.
    """
    return [sequences[part] for part in similar(batch.lengths[sequences], budget)]


def similar(lengths: Tensor, budget: int) -> list[Tensor]:
    """Split the indices of `lengths` into parts whose number of entries times the longest is at most `budget`."""
    rest = lengths.argsort(descending=True, stable=True)
    parts = []
    while len(rest):
        count = max(1, budget // int(lengths[rest[0]]))
        parts.append(rest[:count])
        rest = rest[count:]
    return parts


# Packed ---------------------------------------------------------------------------------------------------------------


def packed(batch: Batch, sequences: Tensor) -> Layout:
    prompts, responses = batch.prompt_lengths[sequences], batch.response_lengths[sequences]
    lengths = prompts + fed(batch, sequences)
    ids = batch.ids[ranges(starts(batch.lengths)[sequences], lengths)]
    column = ranges(starts(lengths) + prompts - 1, responses)
    position = ranges(torch.zeros_like(lengths), lengths)
    return Layout(ids[None], position[None], None, torch.zeros_like(column), column, lengths)


def packed_slices(batch: Batch, sequences: Tensor, budget: int) -> list[Tensor]:
    """Split `sequences` into as few slices as possible, about equally large, of at most `budget` tokens each.

    Each sequence, longest first, goes to the smallest slice. A sequence longer than the budget gets a slice of its own.
    """
    lengths = batch.lengths[sequences]
    order = lengths.argsort(descending=True, stable=True).tolist()
    size = lengths.tolist()
    count = -(-sum(size) // budget)
    while count:
        heap = [(0, place) for place in range(count)]
        slices: list[list[int]] = [[] for _ in heap]
        for index in order:
            tokens, place = heapq.heappop(heap)
            if tokens and tokens + size[index] > budget:
                break
            slices[place].append(index)
            heapq.heappush(heap, (tokens + size[index], place))
        else:
            return [sequences[torch.tensor(part)] for part in slices if part]
        count += 1
    return []


# Shared ---------------------------------------------------------------------------------------------------------------


def shared(batch: Batch, sequences: Tensor) -> Layout:
    prompts, responses, body = batch.prompt_lengths[sequences], batch.response_lengths[sequences], fed(batch, sequences)
    first, group = starts(batch.lengths)[sequences], same_prompt(batch, sequences)
    rows = int(group.max()) + 1
    prompt, source = torch.zeros(rows, dtype=torch.long), torch.zeros(rows, dtype=torch.long)
    prompt[group], source[group] = prompts, first  # the prompt is the same for all responses of a row
    lead = prompts + before(body, group)  # first column of each response in its row
    width = int((prompt + torch.zeros(rows, dtype=torch.long).index_add(0, group, body)).max())

    shape = rows, width
    ids, position = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    part = torch.full(shape, -1)  # 0 for the prompt, then one number per response; −1 is padding
    inside = torch.arange(width) < prompt[:, None]
    ids[inside], part[inside] = batch.ids[ranges(source, prompt)], 0
    position[inside] = ranges(torch.zeros_like(prompt), prompt)
    row, column = torch.repeat_interleave(group, body), ranges(lead, body)
    ids[row, column], position[row, column] = batch.ids[ranges(first + prompts, body)], ranges(prompts, body)
    part[row, column] = torch.repeat_interleave(torch.arange(1, len(sequences) + 1), body)

    place = torch.arange(width)
    visible = (part[:, None, :] == 0) | (part[:, None, :] == part[:, :, None])
    mask = (visible & (place[:, None] >= place))[:, None]
    step = ranges(torch.zeros_like(responses), responses)
    # The last prompt token predicts a response's first token; each response token predicts the next.
    predicts = torch.where(
        step == 0, torch.repeat_interleave(prompts - 1, responses), torch.repeat_interleave(lead - 1, responses) + step
    )
    return Layout(ids, position, mask, torch.repeat_interleave(group, responses), predicts)


def same_prompt(batch: Batch, sequences: Tensor) -> Tensor:
    """Return a number for each sequence, (b,), from 0: equal for equal prompts."""
    lengths = batch.prompt_lengths[sequences, None]
    column = torch.arange(int(lengths.max()))
    index = (starts(batch.lengths)[sequences, None] + column).clamp(max=len(batch.ids) - 1)
    _, group = torch.where(column < lengths, batch.ids[index], -1).unique(dim=0, return_inverse=True)
    return group


def before(sizes: Tensor, group: Tensor) -> Tensor:
    """Return for each entry the sum of the sizes (b,) of earlier entries of the same group, (b,)."""
    order = group.argsort(stable=True)
    earlier = starts(sizes[order])
    counts = torch.bincount(group)
    found = torch.empty_like(sizes)
    found[order] = earlier - torch.repeat_interleave(earlier[starts(counts)], counts)
    return found


def shared_slices(batch: Batch, sequences: Tensor, budget: int) -> list[Tensor]:
    """Split `sequences` into slices of rows of similar length whose padded size is at most `budget` tokens.

    A row holds a whole group; a group that would exceed the budget is split into several rows.
    """
    if not len(sequences):
        return []
    group, responses = same_prompt(batch, sequences), batch.response_lengths[sequences].tolist()
    prompts = batch.prompt_lengths[sequences].tolist()
    rows: list[list[int]] = []
    sizes: list[int] = []
    for index in group.argsort(stable=True).tolist():
        fits = rows and group[rows[-1][0]] == group[index] and sizes[-1] + responses[index] <= budget
        if fits:
            rows[-1].append(index)
            sizes[-1] += responses[index]
        else:
            rows.append([index])
            sizes.append(prompts[index] + responses[index])
    return [
        sequences[torch.tensor([index for row in part.tolist() for index in rows[row]])]
        for part in similar(torch.tensor(sizes), budget)
    ]


Lay = Callable[[Batch, Tensor], Layout]
Cut = Callable[[Batch, Tensor, int], list[Tensor]]
LAYOUTS: dict[str, tuple[Lay, Cut]] = {
    "padded": (padded, padded_slices),
    "packed": (packed, packed_slices),
    "shared": (shared, shared_slices),
}
"""Layouts by name: function that lays out sequences, and function that splits them into micro-batches."""
