"""Threads and memory of small tensors."""

import torch

from toybandit.workspace import keep_freed_memory, one_thread


def test_threads_are_given_back_even_after_an_error():
    before = torch.get_num_threads()
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
    except KeyError:
        pass
    assert torch.get_num_threads() == before


def test_memory_is_asked_for_once():
    keep_freed_memory.cache_clear()
    keep_freed_memory()
    keep_freed_memory()
    assert keep_freed_memory.cache_info().hits == 1
