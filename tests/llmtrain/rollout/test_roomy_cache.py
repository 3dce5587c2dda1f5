"""A cache with room holds what transformers' own holds, whatever is done with it."""

import pytest
import torch
from transformers import DynamicCache, Qwen2Config

from llmtrain.rollout.roomy_cache import RoomyLayer, make_cache

CONFIG = Qwen2Config(num_hidden_layers=2, hidden_size=16, num_attention_heads=2, num_key_value_heads=2)


def states(batch, length, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, 2, length, 8, generator=generator) for _ in range(2)]


@pytest.mark.parametrize("tokens", [2, 5, 100])
def test_it_holds_what_a_plain_one_holds(tokens):
    """Prompts, three responses to each, tokens until the room is full and beyond, and rows that leave twice."""
    plain, roomy = DynamicCache(config=CONFIG), make_cache(CONFIG, tokens)

    def both(change):
        found = [change(cache) for cache in (plain, roomy)]
        for a, b in zip(plain.layers, roomy.layers, strict=True):
            torch.testing.assert_close(b.keys, a.keys, rtol=0, atol=0)
            torch.testing.assert_close(b.values, a.values, rtol=0, atol=0)
        assert roomy.get_seq_length() == plain.get_seq_length()
        return found

    def add(batch, length, seed):
        for layer in range(2):
            given = states(batch, length, seed + layer)
            (a, b), (c, d) = both(lambda cache, given=given, layer=layer: cache.update(*given, layer))
            assert torch.equal(a, c)
            assert torch.equal(b, d)

    add(10, 4, 0)
    both(lambda cache: cache.batch_repeat_interleave(3))
    batch = 30
    for step in range(9):
        add(batch, 1, 10 + step)
        if step in (3, 6):
            keep = torch.arange(batch)[torch.arange(batch) % 5 != 2]
            both(lambda cache, keep=keep: cache.batch_select_indices(keep))
            batch = len(keep)
    both(lambda cache: cache.batch_select_indices(torch.tensor([batch - 1])))


def test_nothing_is_copied_while_there_is_room():
    cache = make_cache(CONFIG, 8)
    for layer in range(2):
        cache.update(*states(2, 3, 0), layer)
    cache.batch_repeat_interleave(2)
    place = cache.layers[0].keys.data_ptr()
    for step in range(8):
        cache.update(*states(4, 1, step), 0)
        assert cache.layers[0].keys.data_ptr() == place
    cache.update(*states(4, 1, 9), 0)
    assert cache.layers[0].keys.data_ptr() != place


def test_layers_with_a_sliding_window_are_left_alone():
    sliding = Qwen2Config(num_hidden_layers=2, use_sliding_window=True, sliding_window=4, max_window_layers=1)
    kinds = [type(layer) is RoomyLayer for layer in make_cache(sliding, 8).layers]
    assert kinds == [True, False]
