"""Log-probabilities and entropies against plain forward passes."""

import numpy as np
import pytest
import torch
from evaluated import SAMPLING, ids, questions, small_model, subject

from llmtrain.evaluation.statistics import prompt_entropy, response_means
from llmtrain.policy.policy import Policy


def plain(model, ids):
    """Return log p of each next token (L − 1), and the entropy of its distribution."""
    logp = model(torch.tensor([ids])).logits[0, :-1].double().log_softmax(-1).detach()
    return logp.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].numpy(), -(logp.exp() * logp).sum(-1).numpy()


def test_response_means_are_of_temperature_one_over_the_whole_vocabulary():
    model = subject()
    rollouts = model.sample(ids(questions(4)), SAMPLING, seed=1)
    found = response_means(model.policy, rollouts)
    for i, response in enumerate(rollouts.responses()):
        prompt = rollouts.prompt_ids[int(rollouts.prompt_index[i])]
        logp, entropy = plain(model.model, prompt + response)
        assert found.logp[i] == pytest.approx(logp[len(prompt) - 1 :].mean(), abs=1e-5)
        assert found.entropy[i] == pytest.approx(entropy[len(prompt) - 1 :].mean(), abs=1e-5)


@pytest.mark.parametrize("layout", ["padded", "shared"])
def test_prompt_entropy_is_over_all_tokens_but_the_first(layout):
    model, prompts = subject(), [*ids(questions(4)), [3]]
    policy = Policy(small_model(), layout=layout)
    found = prompt_entropy(policy, prompts)
    for i, prompt in enumerate(prompts[:4]):
        assert found[i] == pytest.approx(plain(model.model, prompt)[1].mean(), abs=1e-5)
    assert np.isnan(found[4])
    assert np.isnan(prompt_entropy(policy, [[3]])).all()
