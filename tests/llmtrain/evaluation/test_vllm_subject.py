"""Evaluation with responses from real vLLM."""

import json

import pytest

pytest.importorskip("vllm", reason="make install")

import torch
from evaluated import TOKENIZER, ids, questions

from llmtrain.commands.eval import main as evaluate
from llmtrain.evaluation.statistics import response_means
from llmtrain.evaluation.subject import Subject
from llmtrain.policy.model import build_tiny, save
from llmtrain.settings.sampling import Sampling

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a model with heads wide enough for vLLM, and sharp enough for small nuclei."""
    model = build_tiny(len(TOKENIZER), hidden=64, layers=2, heads=2, kv_heads=2, intermediate=64, seed=4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5 if parameter.ndim == 2 else 1.0)
    path = tmp_path_factory.mktemp("models") / "wide"
    save(model, TOKENIZER, path)
    return path


@pytest.fixture(scope="module")
def both(folder):
    plain = Subject.load(folder)
    fast = plain.sampled_by("vllm", folder, 128)
    yield plain, fast
    fast.close()


@pytest.mark.long
def test_greedy_responses_are_those_of_the_model(both):
    greedy = Sampling(temperature=0, top_p=1.0, samples=1, max_new_tokens=8)
    plain, fast = (one.sample(ids(questions(6)), greedy, seed=0) for one in both)
    assert plain.responses() == fast.responses()


def test_every_token_lies_in_the_nucleus(both):
    """Not only the most likely token is sampled; means use the whole distribution at temperature 1."""
    plain, fast = both
    nucleus = Sampling(temperature=0.8, top_p=0.6, samples=32, max_new_tokens=6)
    rollouts = fast.sample(ids(questions(4)), nucleus, seed=1)
    outside = others = 0
    for owner, response in zip(rollouts.prompt_index.tolist(), rollouts.responses(), strict=True):
        prompt = rollouts.prompt_ids[owner]
        p = (plain.model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1] / 0.8).softmax(-1)
        sampled = p.gather(1, torch.tensor(response)[:, None])
        before = torch.where(p > sampled, p, 0).sum(1)  # of all likelier tokens
        outside += int((before > 0.6 + 1e-4).sum())
        others += int((before > 0).sum())
    assert outside == 0
    assert others > 20
    again = response_means(plain.policy, rollouts)
    assert again.logp == pytest.approx(response_means(fast.policy, rollouts).logp)


def test_a_request_repeats_and_ranks_share_it(both):
    sampling = Sampling(temperature=1.0, top_p=0.9, samples=2, max_new_tokens=6)
    whole = both[1].sample(ids(questions(4)), sampling, seed=3)
    part = both[1].sample(ids(questions(4)), sampling, seed=3, mine=[1, 3])
    assert part.responses() == whole.responses()[2:4] + whole.responses()[6:8]


def test_the_command(folder, tmp_path):
    file = tmp_path / "sums.jsonl"
    file.write_text("".join(json.dumps({"question": f"{i}+1=", "answer": str(i + 1)}) + "\n" for i in range(5)))
    out = tmp_path / "out"
    flags = ["--no-chat", "--samples", "2", "--max-new-tokens", "5", "--top-p", "0.7", "--out", str(out)]
    assert evaluate([str(folder), "--data", str(file), "--rollout", "vllm", *flags]) == 0
    assert json.loads((out / "evaluation.json").read_text())["rollout"] == "vllm"
    assert len((out / "responses.jsonl").read_text().splitlines()) == 10
    with pytest.raises(ValueError, match="'rollout' differs"):
        evaluate([str(folder), "--data", str(file), *flags])
