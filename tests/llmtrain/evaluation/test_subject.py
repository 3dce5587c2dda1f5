"""Log-probabilities and entropies against plain forward passes."""

import numpy as np
import pytest
import torch
from evaluated import SAMPLING, TOKENIZER, ids, questions, subject

from llmtrain.evaluation.subject import Subject


def plain(model, ids):
    """log p of each next token (L − 1), and the entropy of what predicts it."""
    logp = model(torch.tensor([ids])).logits[0, :-1].double().log_softmax(-1).detach()
    return logp.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].numpy(), -(logp.exp() * logp).sum(-1).numpy()


def test_response_means_are_of_temperature_one_over_the_whole_vocabulary():
    model = subject()
    rollouts = model.sample(ids(questions(4)), SAMPLING, seed=1)
    found = model.response_means(rollouts)
    for i, response in enumerate(rollouts.responses()):
        prompt = rollouts.prompt_ids[int(rollouts.prompt_index[i])]
        logp, entropy = plain(model.model, prompt + response)
        assert found.logp[i] == pytest.approx(logp[len(prompt) - 1 :].mean(), abs=1e-5)
        assert found.entropy[i] == pytest.approx(entropy[len(prompt) - 1 :].mean(), abs=1e-5)


def test_prompt_entropy_is_over_all_tokens_but_the_first():
    model, prompts = subject(), [*ids(questions(4)), [3]]
    found = model.prompt_entropy(prompts)
    for i, prompt in enumerate(prompts[:4]):
        assert found[i] == pytest.approx(plain(model.model, prompt)[1].mean(), abs=1e-5)
    assert np.isnan(found[4])
    assert np.isnan(model.prompt_entropy([[3]])).all()


def test_a_device_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown device 'tpu'"):
        Subject.load(tmp_path, device="tpu")
    with pytest.raises(ValueError, match="does not exist"):
        Subject.load(tmp_path / "nothing")


def test_sampling_takes_stop_tokens():
    stop = TOKENIZER("1")["input_ids"][0]
    model = Subject(subject().model, TOKENIZER, stop_token_ids=tuple(range(2, len(TOKENIZER))))
    assert model.sample([[stop]], SAMPLING, seed=0).response_lengths.tolist() == [1] * SAMPLING.samples
