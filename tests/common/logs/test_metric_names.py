"""Names of metrics in other trainers."""

from pathlib import Path

import pytest

from entrostat.logs.foreign.metric_names import NAMES, candidates, page, translate, wrote

DOCS = Path(__file__).parents[3] / "docs"


def test_the_first_of_several_names_counts():
    assert translate(["critic/rewards/mean", "critic/score/mean"]) == {"critic/score/mean": "reward"}
    assert translate(["actor/entropy", "entropy"]) == {"entropy": "entropy"}
    assert translate(["critic/rewards/mean", "mine"]) == {"critic/rewards/mean": "reward"}


def test_prefixes_of_loggers():
    assert translate(["train/entropy", "train/clip_ratio/high_mean", "eval/entropy"]) == {
        "train/entropy": "entropy",
        "train/clip_ratio/high_mean": "clip/high",
        "eval/entropy": "eval/entropy",
    }


def test_evaluations_of_one_source_and_of_several():
    one = [
        "val-core/openai/gsm8k/acc/mean@8",
        "val-core/openai/gsm8k/acc/best@8/mean",
        "val-aux/openai/gsm8k/acc/std@8",
    ]
    assert translate(one) == {one[0]: "eval/avg@8", one[1]: "eval/pass@8"}
    assert translate(["val-core/aime/acc/mean@32", "val-core/amc/reward/mean@4"]) == {
        "val-core/aime/acc/mean@32": "eval/aime/avg@32",
        "val-core/amc/reward/mean@4": "eval/amc/avg@4",
    }


def test_no_two_metrics_get_one_name():
    names = [name for theirs in NAMES.values() for name in theirs if "{" not in name] + list(NAMES)
    given = translate(names)
    assert len(set(given.values())) == len(given)


def test_the_page_has_the_table():
    assert page() in (DOCS / "metrics.md").read_text()


@pytest.mark.parametrize(
    ("ours", "names", "found"),
    [
        ("entropy", ["pi/entropy", "Policy_Entropy/mean", "lr"], ("Policy_Entropy/mean", "pi/entropy")),
        ("entropy", ["entropy/std", "entropy_coef", "target_entropy", "eval/entropy", "entropy/max"], ()),
        ("reward", ["mine/score", "returns", "reward_std", "advantages/reward"], ("mine/score", "returns")),
        (
            "mismatch/logp_gap",
            ["training/rollout_probs_diff_mean", "probs_diff_max"],
            ("training/rollout_probs_diff_mean",),
        ),
    ],
)
def test_names_that_look_like_one(ours, names, found):
    assert candidates(ours, names) == found


def test_who_wrote_a_log():
    assert wrote(["actor/entropy", "critic/score/mean", "step_time"]) == "verl"
    assert wrote(["completions/mean_length", "mine"]) == "TRL"
    assert wrote(["mine"]) == ""


def test_words_of_tables_are_names():
    names = ["Response Length", "Grad Norm", "Entropy", "Mean Reward", "reward"]
    ours = {"Response Length": "response_length", "Grad Norm": "grad_norm", "Entropy": "entropy", "reward": "reward"}
    assert translate(names) == ours
    assert translate(["Reward", "reward"]) == {"reward": "reward"}  # the exact name counts
