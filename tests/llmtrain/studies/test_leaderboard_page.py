"""Page of the leaderboard, from standings."""

from dataclasses import replace

import numpy as np

from entrostat.about.lineup import Entry
from llmtrain.settings.config import RewardConfig, TrainConfig
from llmtrain.studies.leaderboard_page import page
from llmtrain.studies.standings import Standing


def ended(controller, args, entropy, reward):
    """Return a standing of two seeds whose four metrics differ by .01 around the given values."""
    spread = np.array([-0.005, 0.005])
    values = {"entropy": entropy + spread, **dict.fromkeys(("reward", "avg@8", "pass@8"), reward + spread)}
    return Standing(entry=Entry(controller, args), values=values)


STRENGTHS = (
    ended("ppo", {}, 0.2, 0.3),
    ended("kl_ref", {"beta": 0.1}, 0.25, 0.3),
    ended("kl_ref", {"beta": 0.2}, 0.36, 0.2),
    ended("clip_higher", {"eps_high": 0.5}, 0.18, 0.3),
    ended("clip_higher", {"eps_high": 1.0}, 0.21, 0.3),
)


def test_curves_are_read_at_the_target():
    """√(.25·.36) = .3: half way in the logarithm."""
    text = page(STRENGTHS, [], TrainConfig(target=0.3), "command", "x.png")
    (row,) = [line for line in text.splitlines() if line.startswith("| `kl_ref` | beta=0.15 |")]
    assert row.count(" 0.250 ±0.00") == 3
    assert "`clip_higher` (eps_high from 0.5 to 1: 0.180 to 0.210 nats)" in text
    assert "Share of seed noise" not in text
    assert "with a target hold 0.3 nats.\n" in text


def test_of_one_controller_a_hyperparameter_may_reach_what_another_does_not():
    more = [ended("kl_ref", {"scale": x}, h, 0.3) for x, h in ((1, 0.1), (2, 0.2))]
    text = page((*STRENGTHS, *more), [], TrainConfig(target=0.3), "command", "x.png")
    assert "| `kl_ref` | beta=0.15 |" in text
    assert "`kl_ref` (scale from 1 to 2: 0.100 to 0.200 nats)" in text


def test_targets_of_their_own_are_told():
    text = page((*STRENGTHS, ended("thermostat", {"target": 0.4}, 0.4, 0.2)), [], TrainConfig(), "command", "x.png")
    assert "with a target hold their own targets, or the target in that column.\n" in text


def test_what_is_noise_is_told():
    more = [ended(name, {"k": k}, h, 0.3 - k / 10) for name in ("clip_cov", "kl_cov") for k, h in ((1, 0.2), (2, 0.4))]
    text = page((*STRENGTHS, *more), [], TrainConfig(target=0.3), "command", "x.png")
    (said,) = (line for line in text.splitlines() if line.startswith("Share of seed noise "))
    assert "% for reward" in said


def test_without_curves_or_target_there_is_nothing_to_read():
    assert "## At" not in page(STRENGTHS, [], TrainConfig(), "command", "x.png")
    assert "## At" not in page(STRENGTHS[:2], [], TrainConfig(target=0.3), "command", "x.png")


def test_advantages_have_rows_and_notes():
    entries = [Entry("ppo"), Entry("ppo", advantage="gdpo"), Entry("ppo", advantage="rae decay=0.5")]
    standings = [replace(ended("ppo", {}, 0.2, 0.3), entry=entry) for entry in entries]
    text = page(standings, [], TrainConfig(), "command", "x.png")
    assert "`ppo` with each of 3 advantages trains the same model" in text
    assert "advantage grpo or that of the second column" in text
    assert "| `ppo` | advantage=gdpo | 0.200 | 0.300 | 0.300 | 0.300 | one reward: " in text
    assert "| `ppo` | advantage=rae decay=0.5 | 0.200 |" in text
    shaped = page(standings, [], TrainConfig(reward=RewardConfig(format="boxed")), "command", "x.png")
    assert "one reward" not in shaped


def test_rows_of_another_start_model_are_marked():
    standings = [replace(s, start=(0.5224, 0.5168)) for s in STRENGTHS]
    standings[3] = replace(standings[3], start=(0.5208, 0.5228))
    text = page(standings, [], TrainConfig(), "command", "x.png")
    assert "1 of the entries, marked, began with another start model" in text
    assert [line.split("|")[2].strip() for line in text.splitlines() if line.endswith("| another start model |")] == [
        "eps_high=0.5"
    ]
    assert "another start model" not in page(STRENGTHS, [], TrainConfig(), "command", "x.png")
