"""Loading of a model, and the tokens that stop its responses."""

import pytest
from evaluated import SAMPLING, TOKENIZER, subject

from llmtrain.evaluation.subject import Subject


def test_a_device_that_is_not_there_is_refused(tmp_path):
    for folder, device, names in ((tmp_path, "tpu", "'tpu'"), (tmp_path / "nothing", "cpu", "nothing")):
        with pytest.raises(ValueError, match=names):
            Subject.load(folder, device=device)


def test_sampling_takes_stop_tokens():
    stop = TOKENIZER("1")["input_ids"][0]
    model = Subject(subject().model, TOKENIZER, stop_token_ids=tuple(range(2, len(TOKENIZER))))
    assert model.sample([[stop]], SAMPLING, seed=0).response_lengths.tolist() == [1] * SAMPLING.samples
