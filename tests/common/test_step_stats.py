"""Closed loops observe the same on all ranks: one mean entropy, and numbers that do not differ."""

import copy

import numpy as np
import pytest
import torch
import torch.distributed as dist
from tests.ranks import start_ranks

import entrostat as es

PARTS = [torch.tensor([0.1, 0.2, 0.6]), torch.tensor([1.1])]
"""Entropies of the tokens of each rank: the mean of all is .5, that of the means .7."""


def worker(rank, size, folder, changes, said):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    others = {"step": 3, "total_steps": 9, "planned": {"a": 0.5, "b": torch.tensor([1.0, 2.0])}}
    if rank:
        others |= changes
    if said:
        with pytest.raises(ValueError, match=said):
            es.StepStats.over_ranks(PARTS[rank], es.DistReduce(), **others)
    else:
        stats = es.StepStats.over_ranks(PARTS[rank], es.DistReduce(), **others)
        assert float(stats.entropy) == pytest.approx(0.5)
        assert (stats.step, stats.planned) == (3, others["planned"])
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"step": 4}, r"^StepStats.step differs between ranks"),
        ({"epoch": 1}, r"^StepStats.epoch differs between ranks"),
        ({"planned": {"a": 0.5}}, r"^StepStats.planned differs between ranks"),
        ({"planned": {"a": 0.4, "b": torch.tensor([1.0, 2.0])}}, r"^StepStats.planned\['a'\] differs"),
        ({"planned": {"a": 0.5, "b": torch.tensor([1.0, 2.5])}}, r"^StepStats.planned\['b'\] differs"),
    ],
)
def test_ranks_observe_the_same_or_all_hear_why_not(tmp_path, changes, said):
    start_ranks(2, worker, str(tmp_path), changes, said)


def test_one_process_has_its_own_mean():
    assert float(es.StepStats.over_ranks(PARTS[0], es.LocalReduce(), step=1).entropy) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"entropy": "0.3"}, TypeError, r"^StepStats\.entropy must be a number or a tensor, not '0\.3'$"),
        ({"entropy": None}, TypeError, r"^StepStats\.entropy must be a number or a tensor, not None$"),
        ({"step": "3"}, ValueError, r"^StepStats\.step must be a whole number, 0 or more, not '3'$"),
        ({"step": -1}, ValueError, r"^StepStats\.step must be a whole number"),
        ({"epoch": 0.35}, ValueError, r"^StepStats\.epoch must be a whole number, 0 or more, not 0\.35$"),
        ({"total_steps": torch.tensor(3)}, ValueError, r"^StepStats\.total_steps must be a whole number"),
        ({"planned": [0.1]}, TypeError, r"^StepStats\.planned must be numbers by name, as Plan\.info, not \[0\.1\]$"),
        (
            {"planned": {"a": "much"}},
            TypeError,
            r"^StepStats\.planned\['a'\] must be a number or a tensor, not 'much'$",
        ),
        ({"entropies": 0.3}, TypeError, "unexpected keyword argument 'entropies'"),
    ],
)
def test_what_is_no_number_is_named_in_one_line(given, error, said):
    with pytest.raises(error, match=said):
        es.StepStats(**{"entropy": 0.3, **given})


def test_whole_numbers_of_other_types_are_counts():
    stats = es.StepStats(entropy=np.float32(0.5), epochs=3.0, step=np.int64(2))
    assert (stats.epochs, stats.step) == (3, 2)


def test_the_mean_of_ranks_takes_tokens():
    for mean in (PARTS[0].mean(), 0.3):
        with pytest.raises(ValueError, match=r"^StepStats\.over_ranks takes the entropy of each token"):
            es.StepStats.over_ranks(mean, es.LocalReduce())


ANY = {"entropy_bonus": {}, "entropic+adaptive_entropy": {}, "thermostat": {"mode": "reweight"}, "epo": {}, "papo": {}}


@pytest.mark.parametrize("spec", [*ANY, "siren", "aepo", "entrocraft", "adaptive_entropy_trl", "temperature_loop"])
def test_no_state_keeps_a_graph(spec):
    controller, entropy = es.make(spec, **ANY.get(spec, {})), torch.tensor(0.9, requires_grad=True)
    planned = {
        f"{name}/{key}": entropy * 2 for name in ("siren", "thermostat") for key in ("entropy", "updates", "flow")
    }
    for _ in range(3):
        controller.observe(es.StepStats(entropy=entropy * 1, step=0, total_steps=4, planned=planned))

    def tensors(state):
        return [x for value in state.values() for x in (tensors(value) if isinstance(value, dict) else [value])]

    assert not any(x.requires_grad for x in tensors(controller.state_dict()))
    for part in (controller.surrogate, *controller.parts):
        assert not any(isinstance(x, torch.Tensor) and x.requires_grad for x in vars(part).values())
    copy.deepcopy(controller)
