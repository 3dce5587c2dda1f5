"""What the tests of evaluation share: a small model, questions, and a verifier whose verdicts are known beforehand."""

import torch

from llmtrain.data import Question
from llmtrain.data.prompts import encode_all
from llmtrain.evaluation.evaluator import Evaluator
from llmtrain.evaluation.subject import Subject
from llmtrain.policy.model import build_tiny
from llmtrain.policy.policy import Policy
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.settings.sampling import Sampling
from llmtrain.verifiers import Verifier, countdown
from llmtrain.verifiers.verdict import Verdict

TOKENIZER = build_char_tokenizer(countdown.ALPHABET)
SAMPLING = Sampling(temperature=1.0, top_p=0.95, samples=3, max_new_tokens=6)


def small_model(seed=0):
    model = build_tiny(len(TOKENIZER), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16, seed=seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0 if parameter.ndim == 2 else 1.0)
    return model


def subject(seed=0):
    return Subject(small_model(seed), TOKENIZER)


def questions(count, source="a"):
    """Prompts of different lengths; the ground truth is a character that a right response has."""
    return [Question("1+" * i + "2=", str(i % 10), source) for i in range(count)]


def ids(some):
    return encode_all(TOKENIZER, [question.prompt for question in some])


class Contains(Verifier):
    """A response is right when it contains the ground truth; its first character is its answer."""

    def judge(self, responses, ground_truths):
        pairs = zip(responses, ground_truths, strict=True)
        return [Verdict(str(truth) in text, "looked", text[:1] or None) for text, truth in pairs]


def verify(asked, responses):
    return Contains()(responses, [question.ground_truth for question in asked])


def evaluator(asked, judge=verify, *, policy=None, k=2, samples=2, **settings):
    sampling = Sampling(samples=samples, max_new_tokens=6)
    policy = policy or Policy(small_model())
    return Evaluator(policy=policy, questions=asked, verify=judge, sampling=lambda source: sampling, k=k, **settings)
