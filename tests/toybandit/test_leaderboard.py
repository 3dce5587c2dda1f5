"""The leaderboard: who takes part, what its numbers are, and what is written."""

import re
from dataclasses import replace

import numpy as np
import pytest

from entrostat.about.lineup import SUITED, Entry, entries
from toybandit import Config
from toybandit.cli import main
from toybandit.leaderboard import command
from toybandit.leaderboard.cells import TARGET, cells
from toybandit.leaderboard.page import notes, number, page
from toybandit.leaderboard.picture import draw
from toybandit.leaderboard.standings import COMPARED, Estimate, Standing, estimate, middle, standings
from toybandit.sweep.cells import Call
from toybandit.sweep.measure import measure

TINY = Config(states=4, rollouts=6)


def run(entry: Entry, config: Config = TINY, seeds: int = 2):
    return entry, measure(Call(cells(entry, config, range(seeds))))


@pytest.mark.parametrize("entry", SUITED, ids=lambda entry: entry.name)
def test_suited_values_differ_from_the_preset(entry):
    preset, suited = (cells(Entry(entry.controller), TINY, [0]), cells(entry, TINY, [0]))
    assert preset != suited
    assert measure(Call(suited))[0]["error"] == ""


def test_targets_are_given_to_who_has_one():
    assert {cell.config.target for cell in cells(Entry("thermostat"), TINY, range(2))} == {TARGET}
    assert {cell.config.target for cell in cells(Entry("steer"), TINY, range(2))} == {None}


def test_bootstrap_by_hand():
    """Of n equal values nothing varies; the mean of n has the standard error s/√n."""
    assert estimate(np.full(5, 0.3)) == pytest.approx((0.3, 0.3, 0.3))
    values = np.random.default_rng(1).normal(size=400)
    value, low, high = estimate(values)
    assert value == values.mean()
    half = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((value - half, value + half), abs=0.05 * half)
    assert estimate(values) == (value, low, high)


def test_bootstrap_covers():
    """95% intervals of the mean of 16 normal values: the percentile bootstrap covers a little less than 95%."""
    rng = np.random.default_rng(2)
    intervals = [estimate(rng.normal(size=16)) for _ in range(300)]
    assert 0.86 < np.mean([low < 0 < high for _, low, high in intervals]) < 0.98


def test_a_median_among_infinities():
    assert middle(np.array([np.inf, 3.0, 5.0, np.inf])) == 5
    assert middle(np.array([np.inf, 3.0, np.inf])) == np.inf
    assert estimate(np.array([3.0, 5.0, 7.0, np.inf]), middle).high == np.inf


def test_standings_are_ordered_by_reward_and_know_their_twins():
    exact = Config(env="exact", rollouts=6)
    results = [
        run(Entry("ppo")),
        run(Entry("clip_higher", {"eps_high": 0.2})),
        run(Entry("negative_only")),
        run(Entry("steer"), exact),
    ]
    found = standings(results)
    assert [standing.entry.controller for standing in found[:3]] != ["steer"]
    rewards = [standing.reward.value for standing in found[:-1]]
    assert rewards == sorted(rewards, reverse=True)
    assert "enumerates outcomes" in found[-1].error
    assert {s.entry.controller: s.same_as for s in found[:-1]} == {"ppo": "", "clip_higher": "ppo", "negative_only": ""}
    rows = results[0][1]
    ppo = next(standing for standing in found if standing.entry.controller == "ppo")
    assert ppo.gap.value == pytest.approx(np.mean([row["frontier"] - row["reward_final"] for row in rows]))
    assert ppo.entropy.value == pytest.approx(np.mean([row["entropy_final"] for row in rows]))
    assert ppo.reward.value == pytest.approx(np.mean([row["reward_final"] for row in rows]))
    assert (ppo.target_error, ppo.settling) == (None, None)


@pytest.mark.parametrize("name", COMPARED)
def test_twins_are_alike_in_every_number(name):
    entry, rows = run(Entry("ppo"))
    for apart, twin in ((2e-6, "ppo"), (2e-5, "")):
        others = [rows[0], {**rows[1], name: rows[1][name] - apart}]
        found = {s.entry.name: s.same_as for s in standings([(entry, rows), (Entry("clip_higher"), others)])}
        assert found == {"ppo": "", "clip_higher": twin}


def test_an_entry_of_which_one_run_failed_could_not_run():
    entry, rows = run(Entry("ppo"))
    broken = {"error": "logits are not finite after rollout 2: lower lr"}
    (found,) = standings([(entry, [rows[0], broken])])
    assert found.error == broken["error"]


def test_target_errors_are_distances():
    (found,) = standings([run(entry := Entry("entropic", {"tau": 0.0}))])
    rows = measure(Call(cells(entry, TINY, range(2))))
    assert found.target_error.value == pytest.approx(np.mean([abs(row["entropy_held"] - TARGET) for row in rows]))


def test_the_median_of_the_runs_says_when_an_entry_settles():
    entry, rows = run(Entry("entropic"), seeds=3)
    (found,) = standings([(entry, [{**row, "settling": s} for row, s in zip(rows, (np.inf, 3, 40), strict=True)])])
    assert found.settling == (40, 3, np.inf)


def test_numbers_as_text():
    assert number(Estimate(0.6, 0.55, 0.65), 2) == "0.60 [0.55, 0.65]"
    assert number(Estimate(np.inf, 31, np.inf), 0) == "never [31, never]"
    assert number(Estimate(np.inf, np.inf, np.inf), 0) == "never"
    assert number(None, 3) == "–"


def test_notes():
    standing = Standing(entry=Entry("gspo"), same_as="ppo", note="'gspo' is idle: because")
    assert notes(standing) == "same numbers as `ppo`; acts on whole responses, here one token each; 'gspo' is idle"


def test_page_and_picture(tmp_path):
    results = [run(Entry("ppo")), run(Entry("entropic")), run(Entry("steer"), Config(env="exact", rollouts=6))]
    panels = {"noisy": standings(results)}
    text = page(panels, {"noisy": TINY}, seeds=2, picture="x/frontier.png")
    assert "4 states, 16 arms" in text
    assert "Every controller but `rollout_correction`, which needs rollouts of another policy" in text
    assert "- `steer`: controller 'steer' needs statistics over a sample" in text
    holding = text.partition("## Holding the target")[2].partition("## noisy")[0]
    assert "`entropic`" in holding
    assert "`ppo`" not in holding
    assert "The interval of the first row's worst case overlaps with none of the other 0." in holding
    assert "percentile bootstrap intervals over the 2 seeds" in text
    assert text.count("The interval of the first row's reward overlaps with") == 1
    tables = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(tables) == 1 + 2
    draw(panels, {"noisy": TINY}, range(2), tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_best_and_the_baseline_are_named(tmp_path):
    rewards = {"clip_cov": 0.55, "kl_cov": 0.54, "steer": 0.53, "entropic": 0.52, "aem": 0.51, "dro": 0.5, "ppo": 0.4}
    found = [
        Standing(entry=Entry(name), reward=Estimate(x, x - 0.01, x + 0.01), entropy=Estimate(1 - x, 0.3, 0.7))
        for name, x in rewards.items()
    ]
    found.append(replace(found[0], entry=Entry("edge"), same_as="clip_cov"))
    draw({"noisy": found}, {"noisy": TINY}, range(2), tmp_path / "x.png")
    drawn = re.findall(r"<text [^>]*>(.+?)</text>", (tmp_path / "x.svg").read_text())
    assert {*rewards, "edge"} & {*drawn} == {"clip_cov", "kl_cov", "steer", "entropic", "aem"}
    assert drawn.count("GRPO") == 1


@pytest.mark.slow
def test_command(tmp_path, monkeypatch):
    for name, value in (("QUICK_SEEDS", 2), ("QUICK_STATES", 2), ("QUICK_ROLLOUTS", 3)):
        monkeypatch.setattr(command, name, value)
    monkeypatch.setattr("toybandit.leaderboard.cells.ENVS", ("noisy", "det"))
    args = [
        "leaderboard",
        "--quick",
        "--workers",
        "1",
        "--out",
        str(tmp_path / "out"),
        "--page",
        str(tmp_path / "x.md"),
    ]
    assert main(args) == 0
    text = (tmp_path / "x.md").read_text()
    assert (tmp_path / "x" / "frontier.png").exists()
    assert "![Reward against entropy with the frontier](x/frontier.png)" in text
    for env in ("noisy", "det"):
        section = text.partition(f"## {env}\n")[2].partition("\n## ")[0]
        assert all(f"`{entry.controller}`" in section for entry in entries())


def test_errors_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["leaderboard", "--workers", "none"]) == 2
    assert capsys.readouterr().err == "error: workers must be a positive number or ray, not 'none'\n"
    assert not list(tmp_path.iterdir())
