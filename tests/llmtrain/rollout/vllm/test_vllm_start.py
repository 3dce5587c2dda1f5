import pytest
import torch

pytest.importorskip("vllm", reason="make install")

from vllm_answers import CONFIG, EOS, TOKENIZER, ask, forced_logp, sharp_model

from llmtrain.policy.model import save
from llmtrain.rollout.vllm.vllm_engine import VLLMEngine

pytestmark = pytest.mark.slow


def test_answers_are_right_whatever_the_number_of_threads(tmp_path):
    """vLLM keeps a product for each number of rows; how it reads weights depends on the threads at that time."""
    model, before = sharp_model(), torch.get_num_threads()
    save(model, TOKENIZER, tmp_path)
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            engine = VLLMEngine(tmp_path, CONFIG, [EOS])
            rollouts = ask(engine)
            engine.close()
            torch.testing.assert_close(rollouts.logp, forced_logp(model, rollouts), atol=1e-4, rtol=0)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
