"""Picture of the leaderboard: the best entries have names and colours, the others are grey."""

import re

import numpy as np

from entrostat.about.colours import colour_of
from entrostat.about.lineup import Entry
from entrostat.about.titled_points import LONGEST, NAMED, OTHERS
from llmtrain.studies.leaderboard_picture import draw
from llmtrain.studies.standings import Standing, by_entropy

REWARDS = {"clip_cov": 0.7, "kl_cov": 0.6, "steer": 0.5, "entropic": 0.4, "thermostat": 0.3, "aem": 0.2, "ppo": 0.1}


def ended(controller, reward, args=None, **more):
    spread = np.array([-0.01, 0.01])
    values = {"entropy": 0.3 + reward + spread, "reward": reward + spread, "pass@8": 1 - reward + spread}
    return Standing(entry=Entry(controller, args or {}), values=values, **more)


def texts(path):
    """Return the words that are written in an SVG."""
    return re.findall(r"<text [^>]*>(.+?)</text>", path.with_suffix(".svg").read_text())


def titles(path):
    """Return the words that an SVG shows under the pointer."""
    return re.findall(r"<title>(.+?)</title>", path.with_suffix(".svg").read_text())


def test_the_best_of_each_panel_and_the_baseline_are_named(tmp_path):
    standings = [ended(name, reward) for name, reward in REWARDS.items()]
    for metric, named in (("reward", [*REWARDS][:NAMED]), ("pass@8", [*REWARDS][1:-1])):
        draw(standings, [metric], [], tmp_path / "x.png")
        drawn = texts(tmp_path / "x.png")
        assert set(REWARDS) & set(drawn) == set(named)
        assert drawn.count("GRPO") == 1
        text = (tmp_path / "x.svg").read_text()
        assert OTHERS in text
        assert colour_of(named[0]) in text


def test_a_curve_is_one_name_and_long_names_are_cut(tmp_path):
    several = [ended("kl_ref", 0.5 + x, {"beta": x}) for x in (0.1, 0.2)]
    long = ended("clip_cov", 0.9, dict.fromkeys(("first_setting", "second_setting", "third_setting"), "value"))
    draw([*several, long], ["reward"], [], tmp_path / "new" / "x.png")
    drawn = texts(tmp_path / "new" / "x.png")
    assert drawn.count("kl_ref: beta") == 1
    (cut,) = (name for name in drawn if name.startswith("clip_cov"))
    assert len(cut) <= LONGEST
    assert cut.endswith("…")


def test_failed_entries_and_twins_are_left_out(tmp_path):
    failed = Standing(entry=Entry("steer"), error="no", values={})
    draw([ended("ppo", 0.1), ended("aem", 0.1, same_as="ppo"), failed], ["reward"], [], tmp_path / "x.png", 0.45)
    assert not {"aem", "steer"} & set(texts(tmp_path / "x.png"))
    assert titles(tmp_path / "x.png") == ["ppo (0.40 nats, reward 0.100)"]
    assert "target 0.45 nats" in texts(tmp_path / "x.png")


def test_an_entry_far_from_the_others_is_told_beside_them(tmp_path):
    standings = [ended("clip_higher", reward, {"eps_high": reward}) for reward in np.linspace(0.1, 0.9, 12)]
    spread = np.array([-0.01, 0.01])
    far = Standing(entry=Entry("opefo"), values={"entropy": 90 + spread, "reward": 0.05 + spread})
    law = by_entropy([*standings, far], "reward")
    assert law.left_out == ("opefo",)
    draw([*standings, far], ["reward"], [law], tmp_path / "x.png")
    assert "outside: opefo (90.00 nats, reward 0.050)" in texts(tmp_path / "x.png")
    assert len(titles(tmp_path / "x.png")) == len(standings)
