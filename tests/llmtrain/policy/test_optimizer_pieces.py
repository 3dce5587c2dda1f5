"""Optimizer state in pieces: what some ranks wrote, any other number of them reads."""

import pytest
import torch

from llmtrain.policy import optimizer_pieces
from llmtrain.policy.optimizer_pieces import Piece, read_pieces, write_pieces

WHOLE = {"a/exp_avg": torch.arange(10.0), "b/exp_avg": 100 + torch.arange(7.0)}


def cut(whole: dict[str, torch.Tensor], ranks: int, rank: int) -> list[Piece]:
    """Pieces of one rank: equal ones, as ZeRO-3 has them, of which the last may be short or missing."""
    size = {key: -(-len(numbers) // ranks) for key, numbers in whole.items()}
    return [Piece(key, rank * size[key], numbers[rank * size[key] :][: size[key]]) for key, numbers in whole.items()]


@pytest.mark.parametrize("limit", [2**31, 1])
@pytest.mark.parametrize(("writers", "readers"), [(1, 1), (1, 3), (3, 1), (3, 2), (2, 4), (4, 4)])
def test_any_number_of_ranks_reads_what_any_other_wrote(tmp_path, monkeypatch, writers, readers, limit):
    monkeypatch.setattr(optimizer_pieces, "LIMIT", limit)
    for rank in range(writers):
        write_pieces([piece for piece in cut(WHOLE, writers, rank) if len(piece.numbers)], tmp_path, rank)
    read = {key: torch.zeros_like(numbers) for key, numbers in WHOLE.items()}
    for rank in range(readers):
        read_pieces(cut(read, readers, rank), tmp_path)
    assert all(torch.equal(read[key], numbers) for key, numbers in WHOLE.items())
    assert len(list(tmp_path.iterdir())) == (writers if limit > 1 else sum(len(WHOLE) for _ in range(writers)))


def test_a_state_that_is_not_whole_is_refused(tmp_path):
    write_pieces(cut(WHOLE, 2, 0), tmp_path, 0)
    with pytest.raises(ValueError, match=r"holds 5 of 10 numbers of a/exp_avg: another model's state"):
        read_pieces(cut(WHOLE, 1, 0), tmp_path)
