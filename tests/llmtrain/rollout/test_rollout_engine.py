"""Answers of an engine that are refused, and the share of each rank in a request."""

from dataclasses import replace

import pytest
import torch

from llmtrain.policy.model import build_tiny, save
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf_engine import CopyEngine, HFEngine
from llmtrain.rollout.rollout_engine import Begun, Request, RolloutError, Sampler, check_answer
from llmtrain.settings.config import RolloutConfig
from llmtrain.verifiers.countdown import ALPHABET

CONFIG = RolloutConfig(max_new_tokens=5)
TOKENIZER = build_char_tokenizer(ALPHABET)
PROMPTS = TOKENIZER(["3 5=8:", "7 2 1=6:", "4=4:"])["input_ids"]


@pytest.fixture(scope="module")
def policy():
    return build_tiny(len(TOKENIZER), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16), TOKENIZER


def request(*shares, seed=0, n=4):
    return Request(PROMPTS, replace(CONFIG.sampling, samples=n), [list(s) for s in shares or [range(3)]], seed)


def test_a_request_repeats_and_another_seed_does_not(policy):
    engine = HFEngine(*policy, CONFIG)
    first, again, other = (engine.submit(request(seed=seed))() for seed in (1, 1, 2))
    assert first.responses() == again.responses()
    assert first.responses() != other.responses()


def test_ranks_have_together_what_one_has_alone(policy):
    alone = HFEngine(*policy, CONFIG).submit(request())().responses()
    shares = [0, 2], [1], []
    parts = [HFEngine(*policy, CONFIG, rank=r).submit(request(*shares))() for r in range(3)]
    assert parts[0].responses() == alone[:4] + alone[8:]
    assert parts[1].responses() == alone[4:8]
    assert len(parts[2]) == 0
    for rank, part in enumerate(parts):
        check_answer(part, request(*shares), 0, rank)


def test_a_sampler_deals_prompts_out(policy):
    engines = [HFEngine(*policy, CONFIG, rank=rank) for rank in range(2)]
    samplers = [Sampler(engine, TOKENIZER, 0, 2) for engine in engines]
    assert [len(sampler.generate(PROMPTS, request().sampling)) for sampler in samplers] == [8, 4]


def test_a_request_says_how_its_responses_are_drawn(policy):
    """One engine serves training and evaluation: length, temperature and nucleus come with each request."""
    engine = HFEngine(*policy, CONFIG)

    def answer(**drawn):
        return engine.submit(replace(request(), sampling=replace(CONFIG.sampling, samples=4, **drawn)))()

    assert int(answer(max_new_tokens=2).response_lengths.max()) <= 2
    likeliest = answer(temperature=0.0).responses()
    assert likeliest == [likeliest[i] for i in (0, 4, 8) for _ in range(4)]
    assert answer(top_p=1e-6).responses() == likeliest
    assert answer().responses() != likeliest


def test_each_batch_of_a_sampler_has_draws_of_its_own(policy):
    def batches(seed):
        sampler = Sampler(HFEngine(*policy, CONFIG), TOKENIZER, seed, 1)
        return [sampler.generate(PROMPTS, request().sampling).responses() for _ in range(2)]

    first, second = batches(3)
    assert first != second
    assert batches(3) == [first, second]


def test_the_version_is_that_of_the_weights(policy):
    engine = HFEngine(*policy, CONFIG)
    engine.update([], 7)
    assert engine.submit(request())().version.unique().tolist() == [7]


@pytest.mark.parametrize(
    ("changes", "shares", "told"),
    [
        ({}, [range(3)], True),
        ({"old_logp": "trainer"}, [range(3)], False),
        ({"old_logp": "rollout"}, [range(3)], True),
        ({"old_logp": "rollout"}, [range(2), [2]], False),
        ({"old_logp": "rollout", "partial_tokens": 2}, [range(3)], False),
    ],
)
def test_statistics_are_told_where_they_are_those_of_the_policy(policy, tmp_path, changes, shares, told):
    """Not by one of several ranks, which exchange responses, nor of responses that go on, nor by a copy.

    Nor of responses that are not trained on, whose temperature may be another.
    """
    config, asked = replace(CONFIG, **changes), request(*shares)
    trained = replace(asked, trained=True)
    assert (HFEngine(*policy, config).submit(trained)().stats is not None) == told
    assert HFEngine(*policy, config).submit(asked)().stats is None
    save(*policy, tmp_path)
    assert CopyEngine(tmp_path, config).submit(trained)().stats is None


def spoil(rollouts, name):
    logp, lengths = rollouts.logp.clone(), rollouts.response_lengths.clone()
    logp[3] = {"nan": float("nan"), "positive": 0.1}.get(name, logp[3])
    lengths[0] = {"long": 6, "empty": 0}.get(name, int(lengths[0]))
    index = rollouts.prompt_index[1:] if name == "fewer" else rollouts.prompt_index
    index = index.flip(0) if name == "others" else index
    ids = rollouts.response_ids[1:] if name == "short" else rollouts.response_ids
    return replace(rollouts, logp=logp, response_lengths=lengths, prompt_index=index, response_ids=ids)


LIES = {
    "nan": "not finite",
    "positive": "above 0",
    "long": "6 tokens; 1 to 5",
    "empty": "0 tokens; 1 to 5",
    "fewer": "4 for each prompt",
    "others": "4 for each prompt",
    "short": "differ in number",
}


@pytest.mark.parametrize("name", LIES)
def test_a_lying_engine_is_found_out(policy, name):
    rollouts = HFEngine(*policy, CONFIG).submit(request())()
    check_answer(rollouts, request(), 0, 0)
    with pytest.raises(RolloutError, match=LIES[name]):
        check_answer(spoil(rollouts, name), request(), 0, 0)


def test_each_response_has_the_limit_of_what_is_left_to_it(policy):
    def going_on(tokens):
        begun = tuple(Begun(0, 1, sample, tokens) for sample in range(2))
        return replace(request([3, 4]), prompt_ids=PROMPTS + [PROMPTS[1] + [5] * tokens] * 2, begun=begun, tokens=3)

    assert going_on(1).limits == [3, 3, 3, 3, 3]
    assert going_on(3).limits == [3, 3, 3, 2, 2]
    answer = HFEngine(*policy, CONFIG).submit(going_on(3))()
    check_answer(answer, going_on(3), 0, 0)
    assert answer.response_lengths.tolist() == [2, 2]
    assert answer.prompt_index.tolist() == [3, 4]
    for told, asked, names in (
        (answer, going_on(4), "2 tokens; 1 to 1 "),
        (answer.take(torch.tensor([0])), going_on(3), "4 for each prompt and 1 for each that goes on, .* got 1$"),
    ):
        with pytest.raises(RolloutError, match=names):
            check_answer(told, asked, 0, 0)


def test_stale_responses_are_refused(policy):
    rollouts = HFEngine(*policy, CONFIG).submit(request())()
    check_answer(replace(rollouts, version=torch.tensor(3)), request(), 3, 0)
    with pytest.raises(RolloutError, match="the oldest allowed is 3"):
        check_answer(replace(rollouts, version=torch.tensor(2)), request(), 3, 0)


@pytest.mark.parametrize("changes", [{"top_p": 0.9}, {"top_k": 20}])
def test_truncated_sampling_is_refused_with_the_reason(changes):
    with pytest.raises(ValueError, match="importance ratios"):
        RolloutConfig(**changes)


def test_seeds_of_torch_stay_as_they_were(policy):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    HFEngine(*policy, CONFIG).submit(request())()
    assert torch.equal(torch.rand(2), expected)
