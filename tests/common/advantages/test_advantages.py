from math import sqrt

import pytest
import torch

from entrostat import LocalReduce
from entrostat.advantages import REGISTRY, advantage_needs, get_advantage, prime, qae
from entrostat.numbers.segments import Segments

REWARD = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.5], dtype=torch.float64)
GROUP = torch.tensor([5, 5, 5, 2, 2, 9])
SD = (1 / 3) ** 0.5  # unbiased, of (1, 0, 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("grpo", [2 / 3 / (SD + 1e-6), -1 / 3 / (SD + 1e-6), -1 / 3 / (SD + 1e-6), 0, 0, 0]),
        # the quantile of (1, 0, 0) is 0 up to K = 2/3, then 1; that of (1, 1) and of (0.5) is the one reward there is
        ("qae", [1 / (SD + 1e-6), 0, 0, 0, 0, 0]),
        ("qae k=0.6", [1 / (SD + 1e-6), 0, 0, 0, 0, 0]),
        ("qae k=0.7", [0, -1 / (SD + 1e-6), -1 / (SD + 1e-6), 0, 0, 0]),
        ("dr_grpo", [2 / 3, -1 / 3, -1 / 3, 0, 0, 0]),
        ("rloo", [1, -0.5, -0.5, 0, 0, 0]),
        # 2/3, −1/3, −1/3, 0, 0, 0 over their deviation √(6/9/5)
        ("reinforce_pp", [x / sqrt(2 / 15 + 1e-8) for x in (2 / 3, -1 / 3, -1 / 3, 0, 0, 0)]),
        ("reinforce_pp over=responses", [x / (sqrt(2 / 15) + 1e-6) for x in (2 / 3, -1 / 3, -1 / 3, 0, 0, 0)]),
    ],
)
def test_by_hand(name, expected):
    assert get_advantage(name)(REWARD, GROUP).tolist() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("grpo", 0.5 / (0.5**0.5 + 1e-6)), ("dr_grpo", 0.5), ("rloo", 1), ("reinforce_pp", 0.5 / (0.5 + 1e-8) ** 0.5)],
)
def test_a_group_of_two(name, expected):
    """Rewards 1 and 0 have the unbiased standard deviation √½."""
    found = get_advantage(name)(REWARD[:2], GROUP[:2]).tolist()
    assert found == pytest.approx([expected, -expected], rel=1e-14)


def test_reinforce_pp_whitens_over_tokens():
    """R − group mean is ½, −½ with 1 and 3 tokens: mean −¼, unbiased variance (9/16 + 3·1/16)/3 = ¼."""
    length = torch.tensor([1, 3])
    found = get_advantage("reinforce_pp")(REWARD[:2], GROUP[:2], length=length)
    assert found.tolist() == pytest.approx([0.75 / sqrt(0.25 + 1e-8), -0.25 / sqrt(0.25 + 1e-8)], rel=1e-14)
    by_response = get_advantage("reinforce_pp over=responses")(REWARD[:2], GROUP[:2], length=length)
    assert by_response.tolist() == pytest.approx([0.5 / (sqrt(0.5) + 1e-6), -0.5 / (sqrt(0.5) + 1e-6)], rel=1e-14)
    even = get_advantage("reinforce_pp")(REWARD, GROUP, length=torch.full((6,), 1))
    torch.testing.assert_close(even, get_advantage("reinforce_pp")(REWARD, GROUP), rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match="over of the advantage 'reinforce_pp' must be one of tokens, responses"):
        get_advantage("reinforce_pp over=groups")


def test_the_deviation_of_reinforce_pp_is_that_of_all_ranks():
    class Twice(LocalReduce):
        """Reduction over two ranks that hold the same."""

        def size(self, x):
            return 2 * super().size(x)

        def _across(self, x, op):
            return 2 * x

    both = get_advantage("reinforce_pp")(torch.cat([REWARD, REWARD]), torch.cat([GROUP, GROUP + 10]))
    found = get_advantage("reinforce_pp", reduce=Twice())(REWARD, GROUP)
    torch.testing.assert_close(found, both[:6], rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ["grpo", "qae", "dr_grpo", "rloo", "reinforce_pp"])
def test_a_batch_of_one_response_has_no_advantage(name):
    assert get_advantage(name)(REWARD[:1], GROUP[:1]).tolist() == [0.0]


@pytest.mark.parametrize("name", ["grpo", "qae", "dr_grpo", "rloo", "reinforce_pp", "max_rl"])
def test_runs_are_independent_and_order_does_not_matter(name):
    advantage = get_advantage(name)
    runs = torch.stack([REWARD, 1 - REWARD])
    assert torch.equal(advantage(runs, GROUP)[1], advantage(1 - REWARD, GROUP))
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(
        advantage(REWARD[order], GROUP[order]), advantage(REWARD, GROUP)[order], rtol=0, atol=1e-15
    )


@pytest.mark.parametrize(("k", "easy_from"), [(0.2, 9), (0.4, 7), (0.55, 5), (0.6, 5), (0.9, 2)])
def test_qae_learns_from_successes_of_hard_prompts_and_from_failures_of_easy_ones(k, easy_from):
    """`right` of ten responses succeed; a prompt is easy where their share is above 1 − K."""
    advantage = get_advantage(f"qae k={k}")
    for right in range(1, 10):
        reward = torch.tensor([1.0] * right + [0.0] * (10 - right))
        found = advantage(reward, torch.zeros(10, dtype=torch.int64))
        learned, left = (found[right:], found[:right]) if right >= easy_from else (found[:right], found[right:])
        assert learned.sign().eq(-1 if right >= easy_from else 1).all()
        assert learned.abs().allclose(1 / (reward.std() + 1e-6))
        assert left.eq(0).all()


@pytest.mark.parametrize("k", [0, 1, -0.5])
def test_qae_of_no_quantile(k):
    with pytest.raises(ValueError, match=rf"^k of the advantage 'qae' must lie in \(0, 1\); got {k}$"):
        get_advantage(f"qae k={k}")
    with pytest.raises(ValueError, match=rf"^k of the advantage 'qae' must lie in \(0, 1\); got {k}$"):
        qae(REWARD, GROUP, k=k)


def test_rloo_has_the_precision_of_the_rewards():
    reward = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    expected = [1, -1 / 3, -1 / 3, -1 / 3]
    assert get_advantage("rloo")(reward, GROUP.new_zeros(4)).tolist() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_rewards_of_any_kind_are_those_of_float32(name, dtype):
    """Right and wrong ones, and a group of right ones, whose deviation is 0."""
    given = {
        "opo": {"length": torch.tensor([3, 1, 2, 1, 5])},
        "prime": {"prm_logp": torch.zeros(5), "ref_logp": -torch.ones(5), "response": torch.arange(5)},
        "optimal_token": {"logp": -torch.ones(5), "s2": torch.ones(5) / 2, "response": torch.arange(5)},
        "gdpo": {"rewards": torch.tensor([[1, 0, 0, 1, 1], [3, 4, 3, 3, 9]])},
        "remax": {"greedy": torch.tensor([1, 1, 1, 0, 0])},
        "rae": {"source": torch.tensor([0, 1, 0, 1, 1]), "baseline": torch.tensor([0.5, 0.2])},
    }
    reward = torch.tensor([1, 0, 0, 1, 1])
    advantage = get_advantage("pass_at_k k=2" if name == "pass_at_k" else name)
    found = advantage(reward.to(dtype), GROUP[:5], **given.get(name, {}))
    assert found.dtype == torch.float32
    assert torch.equal(found, advantage(reward.float(), GROUP[:5], **given.get(name, {})))
    assert found.isfinite().all()


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "reinforce_pp", "opo", "qae", "max_rl", "pass_at_k k=1"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_rewards_have_no_advantage_whatever_they_are(name, dtype):
    """Not even one of rounding, which a small standard deviation would make large and a sign would make a direction."""
    for value in (0.1, 0.2, 0.3, 0.7, 1 / 3, 1e5):
        for size in (1, 3, 8, 17, 64):
            for group in (torch.zeros(size + 2, dtype=torch.long), torch.arange(size + 2) % 2):
                group[-2:] = 7
                reward = torch.full((size + 2,), value, dtype=dtype)
                reward[-1] = 0.05  # so that the batch has a spread
                given = {"length": 7 * torch.arange(1, size + 3)} if name == "opo" else {}
                assert (get_advantage(name)(reward, group, **given)[:size] == 0).all(), (value, size)


def test_ids_and_lengths_are_one_for_each_response():
    reward, ids = torch.tensor([1.0, 0.0]), torch.tensor([0, 0])
    with pytest.raises(ValueError, match=r"advantage 'grpo': group_id has shape \(3,\) for 2 responses"):
        get_advantage("grpo")(reward, torch.tensor([0, 0, 0]))
    with pytest.raises(ValueError, match=r"advantage 'reinforce_pp': length has shape \(1,\) for 2 responses"):
        get_advantage("reinforce_pp")(reward, ids, length=torch.tensor([3]))


def test_a_rule_of_ones_own_may_give_whole_numbers(tmp_path, monkeypatch):
    (tmp_path / "signs.py").write_text("def sign(reward, group_id):\n    return (2 * reward - 1).long()\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = get_advantage("signs:sign")(torch.tensor([1.0, 0.0]), torch.tensor([0, 0]))
    REGISTRY.pop("signs:sign")
    assert found.tolist() == [1.0, -1.0]
    assert found.dtype == torch.float32


def test_integer_rewards_and_responses_without_tokens():
    assert get_advantage("w_reinforce")(torch.tensor([1, 0]), GROUP[:2]).tolist() == pytest.approx([0.1, -1.0])
    assert get_advantage("opo")(REWARD[:2], GROUP[:2], length=torch.tensor([0, 0])).isfinite().all()
    assert get_advantage("opo")(REWARD[:2], GROUP[:2], length=torch.tensor([0, 1])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("w_reinforce", [0.1, -1, -1, 0.1]), ("psr", [1, 0, 0, 1]), ("nsr", [0, -1, -1, 0])],
)
def test_by_correctness(name, expected):
    reward = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    assert get_advantage(name)(reward, GROUP[:4]).tolist() == expected
    with pytest.raises(ValueError, match=f"advantage '{name}' takes rewards of 0 and 1"):
        get_advantage(name)(REWARD, GROUP)


def test_w_reinforce_of_each_run():
    reward = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    found = get_advantage("w_reinforce")(reward, GROUP[:2], positive=torch.tensor([0.5, 0.25]))
    assert found.tolist() == [[0.5, -1.0], [0.25, 0.25]]


def test_opo_weighs_the_baseline_by_length():
    length = torch.tensor([6, 2, 4, 1, 3, 7])
    found = get_advantage("opo")(REWARD, GROUP, length=length)
    assert found.tolist() == pytest.approx([0.5, -0.5, -0.5, 0, 0, 0], abs=1e-15)
    runs = get_advantage("opo")(torch.stack([REWARD, 1 - REWARD]), GROUP, length=length)
    assert runs[1].tolist() == pytest.approx([-0.5, 0.5, 0.5, 0, 0, 0], abs=1e-15)
    even = get_advantage("opo")(REWARD, GROUP, length=torch.full((6,), 3))
    torch.testing.assert_close(even, get_advantage("dr_grpo")(REWARD, GROUP), rtol=0, atol=1e-15)


PROCESS = torch.tensor([0.2, 0.4, 1.0, 0.5, 0.0, -0.6], dtype=torch.float64)
RESPONSE = torch.tensor([0, 0, 1, 2, 2, 2])
OUTCOME = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)


def test_prime_by_hand():
    """Responses 0 and 1 of a group have mean process rewards .3 and 1, response 2 is alone."""
    group = torch.tensor([1, 1, 2])
    ref = torch.linspace(-3, -1, 6, dtype=torch.float64)
    found = prime(OUTCOME, group, prm_logp=ref + 2 * PROCESS, ref_logp=ref, response=RESPONSE, beta=0.5)
    first = [0.2 - 1 + 0.4 - 1, 0.4 - 1]
    alone = [0.5 + 0.0 - 0.6, 0.0 - 0.6, -0.6]
    expected = [first[0] + 1, first[1] + 1, 1.0 - 0.3 - 1, *alone]
    assert found.tolist() == pytest.approx(expected, abs=1e-14)


def test_prime_of_runs_and_of_a_response_without_tokens():
    given = {"prm_logp": PROCESS - 2, "ref_logp": torch.full((6,), -2.0), "beta": 1.0}
    group = torch.zeros(3, dtype=torch.int64)
    runs = prime(torch.stack([OUTCOME, 1 - OUTCOME]), group, response=RESPONSE, **given)
    alone = prime(1 - OUTCOME, group, response=RESPONSE, **given)
    torch.testing.assert_close(runs[1], alone, rtol=0, atol=1e-15)
    process = {**given, "prm_logp": torch.stack([-PROCESS, PROCESS]) - 2}
    runs = prime(1 - OUTCOME, group, response=RESPONSE, **process)
    torch.testing.assert_close(runs[1], alone, rtol=0, atol=1e-15)
    skipped = prime(OUTCOME[[0, 1, 1, 2]], torch.zeros(4).long(), response=torch.tensor([0, 0, 1, 3, 3, 3]), **given)
    assert skipped.shape == (6,)
    to_go = [x - y for x, y in zip(skipped[3:].tolist(), skipped[4:].tolist(), strict=False)]
    assert to_go == pytest.approx([(PROCESS[i] - (0.3 + 1) / 3).item() for i in (3, 4)], abs=1e-14)


def test_prime_of_a_response_loses_no_digits_to_the_ones_before():
    given = {"prm_logp": torch.zeros(3), "ref_logp": -torch.tensor([1e8, 1.0, 1.0]), "beta": 1.0}
    found = prime(torch.ones(2), GROUP[2:4], response=torch.tensor([0, 1, 1]), **given)
    assert found.tolist() == [1e8, 2.0, 1.0]


@pytest.mark.parametrize("runs", [(), (2,)])
def test_prime_where_no_response_has_a_token(runs):
    none = torch.zeros(*runs, 0, dtype=torch.float64)
    found = prime(
        OUTCOME.expand(*runs, 3), GROUP[:3], prm_logp=none, ref_logp=none, response=torch.zeros(0, dtype=torch.long)
    )
    assert found.shape == (*runs, 0)


def test_what_is_needed_is_asked_for_by_name():
    with pytest.raises(ValueError, match="advantage 'opo' needs length=, which was not given"):
        get_advantage("opo")(REWARD, GROUP)
    given = {"prm_logp": -PROCESS.abs(), "ref_logp": -PROCESS.abs(), "response": RESPONSE}
    for name in given:
        with pytest.raises(ValueError, match=f"advantage 'prime' needs {name}=, which was not given"):
            prime(OUTCOME, GROUP[:3], **{**given, name: None})
    with pytest.raises(ValueError, match="response must ascend"):
        prime(OUTCOME, GROUP[:3], **{**given, "response": RESPONSE.flip(0)})
    assert {name: advantage_needs(name) for name in REGISTRY if advantage_needs(name)} == {
        "gdpo": ("rewards",),
        "remax": ("greedy",),
        "rae": ("source", "baseline"),
        "optimal_token": ("logp", "s2", "response"),
        "opo": ("length",),
        "prime": ("prm_logp", "ref_logp", "response"),
    }


def test_hyperparameters_follow_the_name():
    found = get_advantage("w_reinforce positive=0.5")(torch.tensor([1.0, 0.0]), torch.tensor([0, 0]))
    assert found.tolist() == [0.5, -1]
    assert advantage_needs("opo") == ("length",)
    for name, said in (
        ("qae kappa=2", "advantage 'qae' has no hyperparameter 'kappa'; it has k"),
        ("grpo k=2", "advantage 'grpo' has no hyperparameter 'k'; it has none"),
        ("qae k=high", "k of the advantage 'qae' must be a number; got 'high'"),
        ("qae 0.4", "expected key=value, got '0.4'"),
        ("", "unknown advantage ''; choose from grpo, "),
    ):
        with pytest.raises(ValueError, match=f"^{said}"):
            get_advantage(name)


def test_unknown_name():
    with pytest.raises(ValueError, match="unknown advantage 'critic'; choose from grpo, dr_grpo, rloo"):
        get_advantage("critic")


def test_segments_in_place_of_ids():
    reward, ids = torch.tensor([[1.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0, 0.0]]), torch.tensor([4, 4, 7, 7, 7])
    for name in ("grpo", "rloo", "opo"):
        keywords = {"length": torch.tensor([1, 2, 3, 4, 5])} if name == "opo" else {}
        advantage = get_advantage(name)
        assert torch.equal(advantage(reward, Segments(ids), **keywords), advantage(reward, ids, **keywords))


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "reinforce_pp"])
@pytest.mark.parametrize("baseline", [-5.0, 0.3])
def test_a_constant_in_the_rewards_has_no_effect(name, baseline):
    reward, group = torch.linspace(0, 1, 16, dtype=torch.float64) ** 2, torch.arange(16) // 4
    estimate = get_advantage(name)
    torch.testing.assert_close(estimate(reward + baseline, group), estimate(reward, group), rtol=0, atol=1e-5)


def test_what_each_needs():
    assert advantage_needs("grpo") == ()
    assert set(advantage_needs("prime")) == {"prm_logp", "ref_logp", "response"}


def test_one_response_alone_is_not_whitened():
    assert get_advantage("reinforce_pp over=responses")(torch.tensor([1.0]), torch.tensor([0])).tolist() == [0.0]


@pytest.mark.parametrize("reward", [2.0, 0.5, -1.0])
def test_other_rewards_than_0_and_1_are_refused_where_they_must_be(reward):
    with pytest.raises(ValueError, match="takes rewards of 0 and 1"):
        get_advantage("psr")(torch.tensor([1.0, reward]), torch.tensor([0, 0]))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["grpo", "rloo", "max_rl", "pass_at_k k=2", "pass_at_k k=2 variant=best", "qae"])
def test_a_reward_that_is_not_finite_is_refused(name, value):
    """It spoils its group, or is taken for no reward in silence: huggingface/trl#5773."""
    with pytest.raises(ValueError, match="a reward is not finite"):
        get_advantage(name)(torch.tensor([1.0, value, 0.0]), torch.zeros(3, dtype=torch.int64))


SCORES = torch.tensor([1.0, 0.0, 1.0, 0.0])
PAIRS = torch.tensor([0, 0, 1, 1])
COMPARED = {"grpo": {}, "dr_grpo": {}, "rloo": {}, "reinforce_pp": {}, "qae": {}, "max_rl": {}, "pass_at_k k=1": {}}
COMPARED |= {"opo": {"length": torch.ones(8)}, "gdpo": {"rewards": torch.ones(1, 8)}}


@pytest.mark.parametrize("name", COMPARED)
def test_a_group_for_each_response_is_refused(name):
    """Nothing was learned without a word (verl-project/verl#7581)."""
    reward, given = SCORES.repeat(2), COMPARED[name]
    with pytest.raises(ValueError, match=r"^group_id differs between all 8 responses, .* sample several$"):
        get_advantage(name)(reward, torch.arange(8), **given)
    get_advantage(name)(reward, torch.tensor([0, 1, 2, 3, 4, 5, 6, 6]), **given)


@pytest.mark.filterwarnings("error")
def test_of_few_responses_a_group_for_each_is_told():
    with pytest.warns(UserWarning, match="group_id differs between all 4 responses"):
        assert get_advantage("grpo")(SCORES, torch.arange(4)).tolist() == [0, 0, 0, 0]
    get_advantage("grpo")(SCORES[:1], torch.arange(1))
    get_advantage("grpo")(SCORES[:0], torch.arange(0))
    get_advantage("nsr")(SCORES, torch.arange(4))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda f: f(SCORES.tolist(), PAIRS), "reward must be a tensor with a number for each response, not list"),
        (lambda f: f(SCORES[0], PAIRS), "reward must be a tensor with a number for each response, not a single number"),
        (lambda f: f(SCORES, ["a", "a", "b", "b"]), "group_id must be a tensor of integers, not list: number the prom"),
        (lambda f: f(SCORES, PAIRS.double()), r"group_id must be a tensor of integers, not of torch\.float64"),
        (lambda f: f(SCORES, group_id=PAIRS.numpy()), "group_id must be a tensor of integers, not ndarray"),
    ],
)
def test_what_is_no_tensor_of_its_kind_is_named_in_one_line(call, said):
    with pytest.raises(TypeError, match=f"^advantage 'grpo': {said}"):
        call(get_advantage("grpo"))


def test_a_column_of_rewards_is_refused():
    with pytest.raises(ValueError, match=r"^advantage 'grpo': group_id has shape \(4,\) for 1 responses$"):
        get_advantage("grpo")(SCORES[:, None], PAIRS)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lengths'"):
        get_advantage("opo")(SCORES, PAIRS, lengths=torch.ones(4))


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "qae", "max_rl", "pass_at_k variant=best"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 600.1, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_is_no_difference_between_rewards(name, scale, dtype):
    """Sums of the same parts in another order differ in the last place (NVIDIA-NeMo/RL#4161)."""
    reward = torch.tensor([scale] * 8, dtype=dtype)
    reward[3] = torch.nextafter(reward[3], 2 * reward[3])
    group = torch.zeros(8, dtype=torch.long)
    assert not get_advantage(name)(reward, group).any()
    reward[5] *= 1.1
    found = get_advantage(name)(reward, group)
    assert found.argmax() == 5
    assert found[5] > 1e-3


FOUR, ONE_GROUP = torch.tensor([0.1, 0.3, 0.7, 0.9]), torch.zeros(4, dtype=torch.int64)
LOGP, S2 = torch.tensor([-0.5, -1.0, -1.0, -2.0]), torch.full((4,), 0.3)
TOLD = {"logp": LOGP, "s2": S2, "response": torch.arange(4)}


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [
        ("remax", {"greedy": torch.ones(3)}, r"'remax': greedy has shape \(3,\) for 4 responses"),
        ("remax", {"greedy": torch.ones(2, 1)}, r"'remax': greedy has shape \(2, 1\) for 4 responses"),
        ("remax", {"greedy": 1.0}, "'remax': greedy must be a tensor, not float"),
        ("remax", {"greedy": torch.tensor([1, torch.nan, 0, 1])}, "'remax': greedy is not finite everywhere"),
        ("gdpo", {"rewards": FOUR}, r"'gdpo': rewards must be a stack of tensors like reward; got \(4,\)"),
        ("gdpo", {"rewards": torch.ones(0, 4)}, r"'gdpo': rewards must be a stack of tensors like reward"),
        ("gdpo", {"rewards": torch.ones(2, 3)}, r"'gdpo': rewards has shape \(2, 3\) for 4 responses"),
        ("gdpo", {"rewards": torch.stack([FOUR, FOUR.log() / 0])}, "'gdpo': rewards is not finite everywhere"),
        ("gdpo", {"rewards": FOUR[None], "weight": torch.ones(2)}, "weight must have a number for each of the 1"),
        ("optimal_token", {**TOLD, "logp": LOGP.exp()}, "'optimal_token': logp must be log-probabilities, at most 0"),
        ("optimal_token", {**TOLD, "logp": LOGP * torch.nan}, "'optimal_token': logp is not finite"),
        ("optimal_token", {**TOLD, "logp": LOGP[1:]}, r"'optimal_token': logp has shape \(3,\) for 4 tokens"),
        ("optimal_token", {**TOLD, "s2": S2 * 10}, "'optimal_token': s2 must be Σπ² of each token, from 0 to 1; got 3"),
        ("optimal_token", {**TOLD, "response": torch.arange(4) + 1}, "response must number the responses from 0 to 3"),
        ("prime", {"prm_logp": LOGP, "ref_logp": LOGP.exp(), "response": torch.arange(4)}, "'prime': ref_logp must be"),
    ],
)
def test_what_an_advantage_is_told_is_what_its_name_says(name, told, said):
    with pytest.raises((TypeError, ValueError), match=said):
        get_advantage(name)(FOUR, ONE_GROUP, **told)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_rewards_that_cancel_leave_nothing(share, dtype):
    """r and 1 − r have opposite advantages; whitened, their rounding would be up to .002."""
    given = [0.95, 0.1, 0.3, 0.35, 0.7, 0.77, 0.2, 0.9, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    reward, group = torch.tensor(given, dtype=dtype), torch.arange(16) // 8
    parts, weight = torch.stack([reward, 1 - reward]), torch.full((2,), share, dtype=dtype)
    assert get_advantage("gdpo")(reward, group, rewards=parts, weight=weight).abs().max() == 0
    uneven = get_advantage("gdpo")(reward, group, rewards=parts, weight=torch.tensor([share, 0.99 * share]))
    assert uneven.abs().max() > 1  # a hundredth that is left is a difference
