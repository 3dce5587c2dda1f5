import torch

from entrostat.numbers.draws import generator_seed, hash_bits, normal, uniform


def test_first_output_of_splitmix64():
    """The generator seeded with 0 gives 0xE220A8397B1DCDAF first (published reference value)."""
    assert int(hash_bits(0)) & (1 << 64) - 1 == 0xE220A8397B1DCDAF


def test_keyed_by_identity_not_by_place():
    ids = torch.arange(100)
    whole = uniform(7, 3, ids)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    assert torch.equal(uniform(7, 3, ids[order]), whole[order])
    assert torch.equal(uniform(torch.tensor([7, 8])[:, None], 3, ids)[0], whole)
    assert not torch.equal(uniform(8, 3, ids), whole)
    assert not torch.equal(uniform(7, 4, ids), whole)


def test_uniform_is_uniform():
    u = uniform(1, torch.arange(200_000))
    assert 0 < u.min() < u.max() < 1
    counts = torch.histc(u, 100, 0, 1)
    chi2 = ((counts - 2000) ** 2 / 2000).sum()
    assert chi2 < 160  # 99 degrees of freedom: exceeded once in 10,000
    pairs = torch.corrcoef(torch.stack([u[:-1], u[1:]]))[0, 1]
    assert abs(pairs) < 5 / 200_000**0.5


def test_normal_has_unit_variance():
    z = normal(1, torch.arange(200_000))
    assert abs(z.mean()) < 5 / 200_000**0.5
    assert abs(z.var() - 1) < 5 * (2 / 200_000) ** 0.5


def test_generator_seed_is_a_seed():
    seeds = {generator_seed("rollout", 0, step) for step in range(1000)}
    assert len(seeds) == 1000
    assert generator_seed("rollout", 0, 1) != generator_seed("eval", 0, 1)
    for seed in seeds:
        torch.Generator().manual_seed(seed)
