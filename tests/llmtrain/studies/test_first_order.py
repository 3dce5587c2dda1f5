"""First-order effect of a step, against autograd derivatives and the measured change of a small step."""

import pytest
import torch

from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.sequences.batch import Batch
from llmtrain.studies.first_order import OF_WEIGHTS, first_order, influence

TEMPERATURE = 0.7


def distributions(model, batch, head=None):
    """Return log p (N, V) of the response tokens, by the model's own output layer or another."""
    out = []
    for ids, prompt in zip(batch.ids.split(batch.lengths.tolist()), batch.prompt_lengths.tolist(), strict=True):
        states = model.base_model(ids[None]).last_hidden_state[0, prompt - 1 : -1]
        weight = model.get_output_embeddings().weight if head is None else head
        out.append((states @ weight.T / TEMPERATURE).log_softmax(-1))
    return torch.cat(out)


def entropies(model, batch, head=None):
    logp = distributions(model, batch, head)
    return -(logp.exp() * logp).sum(-1)


def log_probabilities(model, batch, head=None):
    targets = batch.targets(torch.arange(len(batch)))
    return distributions(model, batch, head).gather(1, targets[:, None])[:, 0]


@pytest.fixture(params=[True, False], ids=["tied", "untied"])
def case(request):
    torch.manual_seed(0)
    model = build_tiny(13, hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16)
    if not request.param:
        model.config.tie_word_embeddings = False
        head = torch.nn.Linear(16, 13, bias=False)
        model.set_output_embeddings(head)
    assert (model.get_input_embeddings().weight is model.get_output_embeddings().weight) == request.param
    batch = Batch(torch.randint(1, 13, (11,)), torch.tensor([3, 1]), torch.tensor([4, 3]))
    start = [p.detach().clone() for p in model.parameters()]
    end = [p + 0.05 * torch.randn_like(p) for p in start]
    return model, batch, start, end


def test_against_autograd(case):
    model, batch, start, end = case
    found = first_order(Policy(model, TEMPERATURE), batch, start, end, budget=8)
    exact = model.double()
    moved = [(b - a).double() for a, b in zip(start, end, strict=True)]
    output = exact.get_output_embeddings().weight
    index = next(i for i, p in enumerate(exact.parameters()) if p is output)
    head = output.detach().clone().requires_grad_()
    for token in range(7):
        slopes = torch.autograd.grad(entropies(exact, batch)[token], list(exact.parameters()))
        whole = sum((slope * move).sum() for slope, move in zip(slopes, moved, strict=True)).item()
        slope = torch.autograd.grad(entropies(exact, batch, head)[token], head)[0]
        told = [found[name][token].item() for name in OF_WEIGHTS]
        assert told == pytest.approx([(slope * moved[index]).sum().item(), whole], rel=1e-4, abs=1e-9)


def test_the_model_is_left_as_it_is(case):
    model, batch, start, end = case
    policy = Policy(model, TEMPERATURE)
    before = model.config._attn_implementation
    first_order(policy, batch, start, end, budget=8)
    assert all(torch.equal(p, a) for p, a in zip(model.parameters(), start, strict=True))
    assert model.config._attn_implementation == before


def test_a_small_step_does_what_its_first_order_says(case):
    model, batch, start, end = case
    near = [torch.lerp(a, b, 1e-3) for a, b in zip(start, end, strict=True)]
    found = first_order(Policy(model, TEMPERATURE), batch, start, near, budget=8)["all weights"]
    exact = model.double()
    before = entropies(exact, batch)
    with torch.no_grad():
        for p, value in zip(exact.parameters(), near, strict=True):
            p.copy_(value)
    change = entropies(exact, batch) - before
    assert (found - change).norm() < 0.02 * change.norm()  # transformers' norms round to fp32


def test_influence_is_a_product_of_gradients(case):
    """⟨weight·∇ log π of a token, ∇ΣH⟩, in all weights, or in the output layer without the tied input embeddings."""
    model, batch, _, _ = case
    weight = torch.randn(7)
    found = influence(Policy(model, TEMPERATURE), batch, weight, budget=8)
    exact = model.double()
    parameters = list(exact.parameters())
    head = exact.get_output_embeddings().weight.detach().clone().requires_grad_()
    of_all = torch.autograd.grad(entropies(exact, batch).sum(), parameters)
    of_head = torch.autograd.grad(entropies(exact, batch, head).sum(), head)[0]
    for token in range(7):
        whole = torch.autograd.grad(log_probabilities(exact, batch)[token], parameters)
        alone = torch.autograd.grad(log_probabilities(exact, batch, head)[token], head)[0]
        products = (alone * of_head).sum(), sum((a * b).sum() for a, b in zip(whole, of_all, strict=True))
        told = [found[name][token].item() for name in OF_WEIGHTS]
        assert told == pytest.approx([weight[token].item() * float(x) for x in products], rel=1e-4, abs=1e-7)


def test_influence_leaves_no_gradient_and_knows_what_is_trained(case):
    model, batch, _, _ = case
    policy, weight = Policy(model, TEMPERATURE), torch.ones(7)
    whole = influence(policy, batch, weight, budget=8)
    assert all(p.grad is None for p in model.parameters())
    policy.head.requires_grad_(False)
    frozen = influence(policy, batch, weight, budget=8)
    assert (frozen["output layer"] == 0).all()
    assert not torch.allclose(frozen["all weights"], whole["all weights"])
