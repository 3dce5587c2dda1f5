"""Numbers as tensors, made once."""

import torch

from entrostat.numbers.per_run import constant


def test_made_once_for_each_type():
    first = constant(0.731, torch.float64, torch.device("cpu"))
    assert first.tolist() == [0.731]
    assert constant(0.731, torch.float64, torch.device("cpu")) is first
    assert constant(0.731, torch.float32, torch.device("cpu")).dtype == torch.float32


def test_first_asked_for_in_inference_mode_it_still_serves_in_training():
    with torch.inference_mode():
        weight = constant(0.8642, torch.float64, torch.device("cpu"))
    leaf = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (leaf * weight).sum().backward()
    assert leaf.grad.tolist() == [0.8642] * 3
