import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtrain.data.selection import cut, embed, kmeans_clusters, random_subset
from llmtrain.policy.model import build_tiny
from llmtrain.policy.tokenizer import build_char_tokenizer


@given(st.integers(1, 50), st.data(), st.integers(-3, 2**32))
def test_a_random_subset_has_the_size_without_repeats(n, data, seed):
    size = data.draw(st.integers(1, n))
    found = random_subset(n, size, seed)
    assert len(set(found)) == size
    assert found == sorted(found)
    assert set(found) <= set(range(n))
    assert found == random_subset(n, size, seed)


def test_each_question_is_as_likely_as_another():
    counts = np.bincount([i for seed in range(4000) for i in random_subset(5, 2, seed)])
    assert (abs(counts - 1600) < 155).all()  # 5 standard deviations


def blobs():
    """Return three mixed clusters of 3, 5 and 2 questions far apart, with known distances from each centre."""
    points = np.array(
        [[0, 0], [100, 2], [0, 3], [100, -1], [50, 90], [100, 0], [0, -3], [50, 91], [100, -2], [100, 1]], np.float32
    )
    return points, [{1, 3, 5, 8, 9}, {0, 2, 6}, {4, 7}]


def test_clusters_come_largest_first_and_nearest_to_the_centre_first():
    points, expected = blobs()
    clusters = kmeans_clusters(points, 3, 0)
    assert [set(cluster.tolist()) for cluster in clusters] == expected
    assert clusters[0][0] == 5  # at the centre (100, 0)
    assert set(clusters[0][1:3].tolist()) == {3, 9}
    assert clusters[1][0] == 0


def test_of_two_clusters_of_a_size_that_with_the_earlier_question_comes_first():
    clusters = kmeans_clusters(np.array([[0], [100], [100], [0]], np.float32), 2, 0)
    assert [set(cluster.tolist()) for cluster in clusters] == [{0, 3}, {1, 2}]


@pytest.mark.parametrize(
    ("size", "expected"), [(1, {5}), (3, {3, 5, 9}), (5, {1, 3, 5, 8, 9}), (6, {0, 1, 3, 5, 8, 9})]
)
def test_the_last_cluster_is_cut(size, expected):
    points, _ = blobs()
    found = [i for cluster in cut(kmeans_clusters(points, 3, 0), size) for i in cluster.tolist()]
    assert len(found) == size
    assert set(found) == expected


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.data(), st.integers(0, 1000))
def test_a_kmeans_subset_has_the_size_without_repeats(n, data, seed):
    points = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    size, clusters = data.draw(st.integers(1, n)), data.draw(st.integers(1, n))
    whole = kmeans_clusters(points, clusters, seed)
    found = [i for cluster in cut(whole, size) for i in cluster.tolist()]
    assert len(set(found)) == len(found) == size
    sizes = [len(cluster) for cluster in whole]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == n


@pytest.fixture(scope="module")
def tiny():
    tokenizer = build_char_tokenizer("abcdefgh")
    return build_tiny(len(tokenizer), hidden=32, layers=2, heads=2, kv_heads=2, intermediate=64), tokenizer


def test_prompts_of_different_lengths_are_embedded_as_each_is_alone(tiny):
    model, tokenizer = tiny
    prompts = [tokenizer(text)["input_ids"] for text in ("abc", "h", "abcdefgh", "ba", "cab", "hgfedcbaabc")]
    together = embed(model, tokenizer, prompts, batch_tokens=24)
    assert together.dtype == np.float32
    for prompt, found in zip(prompts, together, strict=True):
        with torch.no_grad():
            last = model(torch.tensor([prompt]), output_hidden_states=True).hidden_states[-1][0]
        np.testing.assert_allclose(found, last.mean(dim=0), rtol=1e-5, atol=1e-6)


def test_the_budget_changes_nothing(tiny):
    model, tokenizer = tiny
    chance = np.random.default_rng(0)
    prompts = [chance.integers(2, 10, size=n).tolist() for n in chance.integers(1, 20, size=30)]
    found = [embed(model, tokenizer, prompts, batch_tokens=budget) for budget in (1, 50, 10_000)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        *((lambda tiny, n=n: random_subset(5, n, 0), f"size .*1 and 5.* {n}$") for n in (0, 6)),
        *((lambda tiny, n=n: cut([np.arange(5)], n), f"size .*1 and 5.* {n}$") for n in (0, 6)),
        (lambda tiny: kmeans_clusters(np.zeros((3, 2), np.float32), 4, 0), "clusters .*1 and 3.* 4$"),
        (lambda tiny: kmeans_clusters(np.array([[np.nan], [1]], np.float32), 1, 0), "not finite"),
        (lambda tiny: embed(*tiny, [[2], []]), "prompt 1 "),
    ],
)
def test_a_refusal_names_what_is_wrong(tiny, call, names):
    with pytest.raises(ValueError, match=names):
        call(tiny)
