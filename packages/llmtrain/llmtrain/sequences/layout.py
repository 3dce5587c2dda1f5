"""How sequences pass through the body of the model together.

    padded    a row for each sequence, padded on the right
    packed    one row of all sequences, without padding; where positions begin anew, attention does not look back
    shared    a row for each prompt: the prompt once, then its responses, which do not see one another

Last tokens stay out: they predict nothing. A layout changes speed and memory, never a statistic. `shared` does least
work where prompts are long or groups large, and its attention mask is dense: for rows of some thousand tokens at most.
`packed` has none but in layers that look back some tokens only, see `llmtrain.policy.attention`.
"""

import heapq
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .batch import Batch
from .ragged import ranges, starts


class Layout(NamedTuple):
    """What the body is given, and where its states lie that predict the n response tokens, in their order."""

    ids: Tensor
    """Token ids (rows, width)."""
    position: Tensor | None
    """Of each token in its sequence (rows, width); None counts from 0 in each row."""
    mask: Tensor | None
    """Which positions each looks at, bool (rows, 1, width, width); None is all before it."""
    row: Tensor
    column: Tensor
    """(n,) each."""


def fed(batch: Batch, sequences: Tensor) -> Tensor:
    """Response tokens that go into the model, (b,): all but the last."""
    return (batch.response_lengths[sequences] - 1).clamp(min=0)


# Padded ---------------------------------------------------------------------------------------------------------------


def padded(batch: Batch, sequences: Tensor) -> Layout:
    prompts, responses = batch.prompt_lengths[sequences], batch.response_lengths[sequences]
    width = int((prompts + fed(batch, sequences)).max())
    rows = torch.repeat_interleave(torch.arange(len(sequences)), responses)
    return Layout(batch.padded(sequences)[:, :width], None, None, rows, ranges(prompts - 1, responses))


def padded_slices(batch: Batch, sequences: Tensor, budget: int) -> list[Tensor]:
    """Cut `sequences` into slices of similar length whose padded size stays within `budget` tokens.

    A sequence longer than the budget gets a slice of its own.
    """
    return [sequences[part] for part in similar(batch.lengths[sequences], budget)]


def similar(lengths: Tensor, budget: int) -> list[Tensor]:
    """Indices of `lengths`, cut into parts whose number times their longest stays within `budget`."""
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
    return Layout(ids[None], position[None], None, torch.zeros_like(column), column)


def packed_slices(batch: Batch, sequences: Tensor, budget: int) -> list[Tensor]:
    """As few slices of about as many tokens each as stay within `budget` tokens.

    The longest goes first, each where the least is. A sequence longer than the budget gets a slice of its own.
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
    prompt[group], source[group] = prompts, first  # any response of a row tells its prompt
    lead = prompts + before(body, group)  # where each response begins in its row
    width = int((prompt + torch.zeros(rows, dtype=torch.long).index_add(0, group, body)).max())

    shape = rows, width
    ids, position = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    part = torch.full(shape, -1)  # 0 for the prompt, then a number for each response; −1 is padding
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
    # The last prompt token predicts a response's first token, and each of its tokens the next.
    predicts = torch.where(
        step == 0, torch.repeat_interleave(prompts - 1, responses), torch.repeat_interleave(lead - 1, responses) + step
    )
    return Layout(ids, position, mask, torch.repeat_interleave(group, responses), predicts)


def same_prompt(batch: Batch, sequences: Tensor) -> Tensor:
    """A number for each of the sequences, (b,), from 0: equal where prompts are."""
    lengths = batch.prompt_lengths[sequences, None]
    column = torch.arange(int(lengths.max()))
    index = (starts(batch.lengths)[sequences, None] + column).clamp(max=len(batch.ids) - 1)
    _, group = torch.where(column < lengths, batch.ids[index], -1).unique(dim=0, return_inverse=True)
    return group


def before(sizes: Tensor, group: Tensor) -> Tensor:
    """Sum of the sizes (b,) of those of the same group that come earlier, (b,)."""
    order = group.argsort(stable=True)
    earlier = starts(sizes[order])
    counts = torch.bincount(group)
    found = torch.empty_like(sizes)
    found[order] = earlier - torch.repeat_interleave(earlier[starts(counts)], counts)
    return found


def shared_slices(batch: Batch, sequences: Tensor, budget: int) -> list[Tensor]:
    """Slices of whole groups, of rows of similar length, whose padded size stays within `budget` tokens.

    A group whose row would be longer is cut into several.
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
"""By name: how sequences are laid out, and how they are cut into micro-batches of at most so many tokens."""
