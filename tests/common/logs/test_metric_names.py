"""Names of metrics in other trainers."""

from pathlib import Path

from entrostat.logs.foreign.metric_names import NAMES, page, translate

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
