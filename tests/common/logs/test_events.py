"""Falls, explosions, lost numbers and dead rewards: by hand, at the edges, and in the logs that people had."""

import io
import json

import numpy as np
import pytest

from entrostat.logs.diagnosis.entropy_course import Fall, Peak, smoothing
from entrostat.logs.diagnosis.events import Change, Death, Gap, look, looks_at
from entrostat.logs.foreign.foreign_runs import read_file


def run(entropy, **others):
    columns = {"entropy": entropy, **others}
    return [
        {"step": step, **{name: values[step] for name, values in columns.items() if step < len(values)}}
        for step in range(len(entropy))
    ]


def test_a_fall_and_an_explosion_after_it():
    entropy = [0.9] * 5 + [0.2] * 10 + [0.1] * 5 + [0.5] * 5 + [3.0] * 10 + [6.0]
    happened = look(run(entropy))
    assert happened.fell == Fall(5, 0.1, 15)
    assert happened.exploded == (25, 6.0)
    assert happened.told == (
        "Entropy fell from 0.9 nats to 0.1 by step 15 (below a third from step 5), "
        "then exploded from step 25 (up to 6 nats)."
    )


@pytest.mark.parametrize(
    ("entropy", "fell", "exploded"),
    [
        ([1.0] * 5 + [0.34] * 20, False, False),
        ([1.0] * 5 + [0.33] * 20, True, False),
        ([1.0] * 5 + [0.1] * 4 + [1.0] * 20, False, False),
        ([0.2] * 5 + [0.59] * 20, False, False),
        ([0.2] * 5 + [0.61] * 20, False, True),  # three times
        ([0.2] * 5 + [0.61] * 20 + [0.2] * 20, False, True),  # for a while
        ([1.0] * 5 + [2.0] * 20 + [1.9] * 5, False, False),  # twice, but not at the end
        ([1.0] * 5 + [2.0] * 20 + [1.9], False, True),  # one value is noise
        ([1.0] * 5 + [1.99] * 20, False, False),
        ([1.0] * 5 + [2.0] * 20, False, True),  # twice
        ([0.4] * 5 + [0.89] * 20, False, False),
        ([0.4] * 5 + [0.9] * 20, False, True),  # twice, and half a nat more
        ([1.0, 9.0, 1.0, 9.0] * 6, False, False),
        ([0.0] * 20, False, False),
        ([], False, False),
    ],
)
def test_what_counts(entropy, fell, exploded):
    happened = look(run(entropy))
    assert (happened.fell is not None, happened.exploded is not None) == (fell, exploded)


def test_the_lowest_entropy_is_told_though_it_rose_in_between():
    assert look(run([1.0] * 5 + [0.3] * 6 + [0.5] * 3 + [0.1] * 6)).fell == Fall(5, 0.1, 14)


def test_a_noisy_entropy_is_smoothed_as_far_as_its_noise_asks():
    """Factors of e or 1/e at random: six in a row are low by chance, and no fall; a fall by e^3 is."""
    noise = np.exp(np.random.default_rng(0).choice([-1.0, 1.0], 400))
    noise[100:106] = 0.1
    assert smoothing(np.ones(400)) == smoothing(np.exp(-np.arange(400) / 50)) == 1
    assert 20 < smoothing(noise) <= 80
    assert look(run(noise.tolist())).told == ""
    fell = look(run((noise * np.where(np.arange(400) < 200, 1, np.exp(-3))).tolist())).fell
    assert fell is not None
    assert 170 <= fell.step <= 230  # 200, and half a window


def test_an_entropy_at_its_target_has_not_exploded():
    assert look(run([0.1] * 5 + [0.5] * 20)).exploded
    assert look(run([0.1] * 5 + [0.5] * 20), target=0.5).exploded is None


@pytest.mark.parametrize("lost", [None, float("nan"), float("inf")])
def test_numbers_that_are_lost(lost):
    metrics = run([1.0] * 20 + [lost] * 5, grad_norm=[1.0] * 22 + [lost] * 3, loss=[lost] * 3 + [1.0] * 22)
    assert look(metrics).lost == {"entropy": 20, "grad_norm": 22}
    assert look(metrics).told == (
        "Not a number: entropy from step 20, grad_norm from step 22; "
        "loss is not a number at 3 steps from 0 to 2 of 25, and is again later."
    )
    assert look(run([lost] * 20)).lost == {"entropy": 0}
    assert look(run([1.0] * 20, loss=[lost] * 20)).told == "Not a number: loss from step 0."


@pytest.mark.parametrize("gap", [float("nan"), None])
def test_sparse_values_between_gaps_are_not_lost(gap):
    """A table with a value at every tenth step and NaN between them, up to nine after the last."""
    for steps in range(91, 101):
        sparse = [0.5 if step % 10 == 0 else gap for step in range(steps)]
        assert look(run([1.0] * steps, loss=sparse)).told == ""
    ends = [*([0.5] + [gap] * 9) * 5, *[gap] * 50]
    assert look(run([1.0] * 100, loss=ends)).lost == {"loss": 41}


@pytest.mark.parametrize("lost", [None, float("nan"), float("inf")])
def test_numbers_that_come_back_are_told_with_their_steps(lost):
    """One metric at one step, two metrics at the same steps, and one that is lost at most of its steps."""
    once = [lost if step == 9 else 1.0 for step in range(30)]
    twice = [lost if step in (3, 20) else 1.0 for step in range(30)]
    often = [1.0 if step in (0, 4, 5, 11, 29) else lost for step in range(30)]
    happened = look(run([1.0] * 30, grad_norm=once))
    assert happened.told == "Grad_norm is not a number at step 9 of 30, and is again later."
    assert happened.marks == [(9, "NaN")]
    both = look(run(twice, loss=twice)).told
    assert both == "Entropy and loss are not a number at 2 steps from 3 to 20 of 30, and are again later."
    assert look(run([1.0] * 30, loss=often)).gaps == {"loss": Gap(25, 1, 28, False)}


def test_blanks_between_values_are_told_where_others_are_logged():
    metrics = without(run([1.0] * 30, loss=[1.0] * 30), "entropy", {9, 10})
    assert look(metrics).told == "Entropy is not logged at 2 steps from 9 to 10 of 30, and is again later."
    assert look(metrics).marks == []
    assert look(without(metrics, "loss", {9, 10})).told == ""  # rows of something else


@pytest.mark.parametrize("gap", [float("nan"), None])
def test_rows_of_evaluations_between_those_of_training_are_no_gaps(gap):
    metrics = run([1.0] * 30, loss=[1.0] * 30)
    metrics[12] = {"step": 12, "entropy": gap, "loss": gap, "eval/reward": 0.5}
    assert look(metrics).told == ""


def without(metrics, name, steps):
    """Return a log without a metric in some steps."""
    return [{key: x for key, x in line.items() if key != name or line["step"] not in steps} for line in metrics]


def test_a_metric_that_ends_while_others_go_on():
    metrics = run([1.0] * 100, reward=[0.4, 0.6] * 50, loss=[0.1] * 100)
    ended = look(without(without(metrics, "entropy", range(60, 100)), "loss", range(60, 100)))
    assert ended.ended == {"entropy": 60, "loss": 60}
    assert ended.told == "Entropy and loss are not logged from step 60 of 100."
    assert ended.marks == [(60, "not logged")]
    assert look(without(metrics, "entropy", range(96, 100))).told == "", "four are too few"
    assert look(without(metrics, "entropy", range(40, 60))).told == "", "it comes again"
    nothing = [line if line["step"] < 60 else {"step": line["step"]} for line in metrics]
    assert look(nothing).told == "Entropy, reward and loss are not logged from step 60 of 100."


@pytest.mark.parametrize("every", [2, 10, 25])
def test_a_sparse_metric_ends_after_twice_its_longest_pause(every):
    metrics = without(run([1.0] * 200), "entropy", [step for step in range(200) if step % every])
    shown = [line | {"loss": 0.1} for line in metrics]
    assert look(shown).ended == {}
    last = 100 // every * every
    for after, told in ((2 * (every - 1) - 1, False), (max(2 * (every - 1), 5), True)):
        part = [line for line in without(shown, "entropy", range(last + 1, 200)) if line["step"] <= last + after]
        assert look(part).ended == ({"entropy": last + 1} if told else {})


def test_evaluations_after_the_last_step_end_no_metric():
    trained = run([1.0] * 20, loss=[0.1] * 20)
    assert look(trained + [{"step": 20 + i, "eval/acc": 0.5, "val-core/x": 1.0} for i in range(9)]).told == ""


def test_a_reward_that_dies():
    reward = [0.2, 0.5, 0.6, 0.5, 0.6, 0.6, 0.5, 0.0, 0.4, 0.0, 0.0, 0.01, 0.0, 0.0]
    assert look(run([1.0] * 14, reward=reward)).died == Death(8, 0.6, 0.0)
    assert look(run([1.0] * 14, reward=reward[:12])).died is None  # four are too few
    assert look(run([1.0] * 20, reward=[*reward, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0])).died == Death(
        8, 0.6, 0.0
    )  # one lucky draw
    pause = [0.5] * 5 + [0.0] * 10 + [0.5] * 5
    assert look(run([1.0] * 40, reward=pause + [0.0] * 15)).died is None  # it has been away for ten before
    assert look(run([1.0] * 40, reward=pause + [0.0] * 20)).died == Death(20, 0.5, 0.0)
    assert look(run([1.0] * 14, reward=[0.0] * 14)).died is None  # it never lived
    assert look(run([1.0] * 14, reward=[-1.0] * 14)).died is None


SHAPES = {
    "±1": (lambda share: 2 * share - 1, -1.0),
    "0/1": (lambda share: share, 0.0),
    "percent": (lambda share: 100 * share, 0.0),
}


@pytest.mark.parametrize(("scaled", "floor"), SHAPES.values(), ids=SHAPES)
def test_a_reward_dies_at_the_same_step_on_every_scale(scaled, floor):
    """The share of correct answers rises from .2 to .45 and is .01 ± .005 from step 40."""
    draw = np.random.default_rng(0)
    share = np.concatenate([np.linspace(0.2, 0.45, 40), 0.01 + draw.uniform(-0.005, 0.005, 60)])
    died = look(run([1.0] * 100, reward=scaled(share).tolist())).died
    assert (died.step, died.floor) == (40, floor)
    gone = np.where(np.arange(100) < 40, share, 0.0)
    exactly = look(run([1.0] * 100, reward=scaled(gone).tolist()))
    assert exactly.died.step == 40
    assert exactly.levels == {}
    half = np.where(np.arange(100) < 40, 0.75, 0.4 + share)
    assert look(run([1.0] * 100, reward=scaled(half).tolist())).died is None


def test_the_floor_of_a_reward_is_told():
    metrics = run([1.0] * 40, reward=[-0.5] * 10 + [-0.1] * 10 + [-1.0] * 20)
    assert look(metrics).told == (
        "The reward is dead since step 20 (it was -0.1, and is now within 5% of the lowest there can be, -1)."
    )
    small = run([1.0] * 40, reward=[0.5] * 20 + [-0.02] * 20)
    assert look(small).died == Death(20, 0.5, 0.0), "a small penalty does not make a reward one of ±1"
    wide = run([1.0] * 40, reward=[2.0] * 20 + [-0.5] * 20)
    assert look(wide).died.floor == 0.0


def test_a_rise_and_a_fall_below_a_third_of_the_peak():
    """By hand: .3 to .9 by step 40, then down to .12 at step 99; .3 is reached at step 86."""
    entropy = np.interp(np.arange(100), [0, 40, 99], [0.3, 0.9, 0.12]).tolist()
    happened = look(run(entropy))
    assert happened.peaked == (0.9, 40, 86, pytest.approx(0.12), 99)
    assert (happened.fell, happened.exploded) == (None, None)
    assert happened.told == (
        "Entropy rose from 0.3 nats to 0.9 by step 40 and then fell to 0.12 by step 99 "
        "(below a third of the peak from step 86)."
    )
    assert happened.marks == [(86, "fell from its peak")]


@pytest.mark.parametrize(
    ("entropy", "peaked"),
    [
        ([0.3] * 10 + [0.9] * 10 + [0.31] * 20, False),  # above a third of the peak
        ([0.3] * 10 + [0.89] * 10 + [0.29] * 4 + [0.6] * 20, False),  # four values
        ([0.3] * 10 + [0.89] * 2 + [0.29] * 20, False),  # a spike is no peak
        ([0.6] * 10 + [0.89] * 10 + [0.29] * 20, False),  # hardly a rise
        ([0.3] * 10 + [0.89] * 10 + [0.05] * 20, False),  # told as a fall
        ([0.3] * 10 + [0.89] * 10 + [0.29] * 20, True),
        ([0.3] * 10 + [2.0] * 10 + [0.4] * 20, True),  # an explosion that is over
        ([0.9] * 10 + [0.1] * 10 + [2.0] * 10 + [0.4] * 20, True),  # a fall before
    ],
)
def test_what_is_a_peak(entropy, peaked):
    assert (look(run(entropy)).peaked is not None) == peaked


def test_a_peak_beside_other_events():
    entropy = [0.9] * 10 + [0.1] * 10 + [2.0] * 10 + [0.4] * 20
    assert look(run(entropy)).told == (
        "Entropy fell from 0.9 nats to 0.1 by step 10; entropy rose from 0.1 nats to 2 by step 20 and then fell to 0.4 "
        "by step 30."
    )
    assert look(run([0.3] * 10 + [2.0] * 10 + [0.4] * 20)).peaked == Peak(2.0, 10, 20, 0.4, 20)
    assert "fell from its peak of 2 nats at step 10 to 0.4" in look(run([0.3] * 10 + [2.0] * 10 + [0.4] * 20)).told


def test_responses_that_grow_or_shrink():
    assert look(run([1.0] * 12, response_length=[100] * 6 + [200] * 6)).length == (100, 200)
    assert look(run([1.0] * 12, response_length=[200] * 6 + [100] * 6)).told == (
        "Responses shrank from 200 to 100 tokens."
    )
    assert look(run([1.0] * 12, response_length=[115] * 6 + [200] * 6)).length is None
    assert look(run([1.0] * 12, response_length=[0] * 6 + [200] * 6)).length is None


def test_an_evaluation_that_falls_while_the_training_reward_rises():
    """Its running median is best around step 2 and ends at .7 of it."""
    evaluations = {"eval/avg@8": [0.30, 0.40, 0.50, 0.50, 0.48, 0.42, 0.35, 0.35, 0.35]}
    rising, falling = [0.1 * s for s in range(9)], [0.9 - 0.1 * s for s in range(9)]
    assert look(run([1.0] * 9, reward=rising, **evaluations)).declined == ("eval/avg@8", 0.5, 2, 0.35)
    assert look(run([1.0] * 9, reward=falling, **evaluations)).declined is None
    assert look(run([1.0] * 9, **evaluations)).declined is None  # there is no training reward
    noisy = {"eval/avg@8": [0.5, 0.1, 0.5, 0.5, 0.1, 0.5, 0.1, 0.5, 0.1]}
    assert look(run([1.0] * 9, reward=rising, **noisy)).declined is None
    spread = {"eval/avg@8/high": evaluations["eval/avg@8"], "eval/length": evaluations["eval/avg@8"]}
    assert look(run([1.0] * 9, reward=rising, **spread)).declined is None


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("eval/pass@8", True),
        ("eval_reward", True),
        ("val-core/openai/gsm8k/acc/mean@8", True),
        ("val/test_score/math", True),
        ("eval/pass@8/low", False),
        ("val-core/math/acc/std@8", False),
        ("eval/entropy", False),
        ("reward", False),
    ],
)
def test_names_of_evaluations(name, is_one):
    assert looks_at(name) == (is_one or name == "reward")


def test_marks_are_in_the_order_of_steps():
    entropy = [1.0] * 10 + [0.1] * 10 + [5.0] * 10 + [None] * 5
    assert look(run(entropy, reward=[0.5] * 25 + [0.0] * 10)).marks == [
        (10, "fell"),
        (20, "exploded"),
        (25, "reward dead"),
        (30, "NaN"),
    ]


def test_levels_of_the_last_third():
    metrics = run([1.0] * 9, truncated=[0.0] * 6 + [0.4, 0.5, 0.6], **{"groups/no_signal": [0.97] * 9})
    assert look(metrics).levels == {"groups/no_signal": pytest.approx(0.97), "truncated": pytest.approx(0.5)}
    assert look(metrics).told == ("97% of the groups have one reward and no signal; 50% of the responses are cut off.")


def test_a_reward_that_never_changes_gives_no_signal():
    same = look(run([1.0] * 30, reward=[0.0, 0.1] + [0.0] * 28))
    assert same.levels == {"reward/same": 1.0}
    assert same.told == "The reward is the same in 100% of the steps and gives no signal."
    logged = look(run([1.0] * 30, reward=[1.0] * 30, **{"groups/no_signal": [0.2] * 30}))
    assert logged.levels == {}
    assert look(run([1.0] * 30, reward=[0.0, 0.1] * 15)).levels == {}
    assert look(run([1.0] * 40, reward=[0.5] * 20 + [0.0] * 20)).levels == {}, "told as a reward that died"


COLLAPSING = (0.05 + 0.95 * np.exp(-np.arange(30) / 5)).tolist()


def lines(form):
    return "".join(form(step, value) + "\n" for step, value in enumerate(COLLAPSING)).encode()


def prime(step, h):
    return f"12:00:00 SUCCESS Step {step} | Time: 7.1s | Loss: 0.01 | Entropy: {h:.6f} | LR: 1e-06"


def slime(step, h):
    return f"[2026-01-01] step {step}: {{'train/entropy_loss': {h:.6f}, 'train/lr': 1e-06}}"


def trl(step, h):
    return f"{{'loss': 0.0, 'entropy': {h:.6f}, 'reward': 0.5, 'epoch': 0.02}}"


def trl_text(step, h):
    return f"{{'loss': '0.0', 'entropy': '{h:.6f}', 'epoch': '0.02'}}"


def european(step, h):
    return f"{step};{h:.6f}".replace(".", ",")


HISTORY = [{"step": step, "entropy": h, "reward": 0.5} for step, h in enumerate(COLLAPSING)]
FORMS = {
    "prime-rl": (lines(prime), "console output of prime-rl or slime"),
    "slime": (lines(slime), "console output of prime-rl or slime"),
    "TRL": (lines(trl), "console output of TRL or ms-swift"),
    "TRL, numbers as text": (lines(trl_text), "console output of TRL or ms-swift"),
    "a bare list": (json.dumps(HISTORY).encode(), "list of log_history"),
    "semicolons": (b"Step;run - train/entropy\n" + lines(european), "CSV"),
    "tabs": (b"Step\trun - train/entropy\n" + lines(lambda step, h: f"{step}\t{h:.6f}"), "CSV"),
}


@pytest.mark.parametrize(("content", "source"), FORMS.values(), ids=FORMS)
def test_forms_in_which_people_have_their_logs(content, source):
    (found,) = read_file(io.BytesIO(content))
    assert found.source == source
    happened = look(found.metrics)
    assert [line["entropy"] for line in found.metrics] == pytest.approx(COLLAPSING, abs=1e-6)
    assert happened.fell is not None


def test_rows_of_two_clocks_are_one_run():
    """W&B's history counts calls of its logger in _step; evaluations lie between steps of training."""
    rows = []
    for step, h in enumerate(COLLAPSING, start=1):
        rows += [{"_step": 3 * step, "train/global_step": step, "train/entropy": h}]
        rows += [
            {"_step": 3 * step + 1, "train/global_step": step, "train/reward": 0.5},
            {"_step": 3 * step + 2, "eval/acc": 0.3},
        ]
    (found,) = read_file(io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert [line["step"] for line in found.metrics] == list(range(1, 31))
    assert {"entropy", "reward", "eval/acc"} <= set(found.metrics[0])


@pytest.mark.parametrize("lost", ["nan", "NaN", "inf", "-Infinity", "np.float64(nan)"])
def test_lost_numbers_of_a_console_are_kept_as_such(lost):
    text = "".join(f"step:{i} - actor/entropy:{lost if i > 20 else 0.5} - actor/grad_norm:1.0\n" for i in range(1, 31))
    (found,) = read_file(io.BytesIO(text.encode()))
    assert found.metrics[-1]["entropy"] is None
    assert look(found.metrics).told == "Not a number: entropy from step 21."


def test_an_entropy_exploded_though_it_only_doubled():
    """zz1358m/SofT-GRPO-master: 1.9 nats, then 4.0 for good; a token is one of fifty there."""
    rose = [{"step": i, "entropy": 1.9 if i < 30 else 4.0} for i in range(60)]
    assert look(rose).exploded == (30, 4.0)
    assert look([line | {"entropy": line["entropy"] / 5} for line in rose]).exploded is None  # .38 to .8 nats
    assert look(rose, target=2.1).exploded is None


def test_an_entropy_that_rises_at_the_end_exploded():
    """befocuss/Deep-GRPO: .39 nats, .2 for 600 of 927 steps, then up to 1.4."""
    rose = [{"step": i, "entropy": 0.2 + max(i - 650, 0) * 0.0045 if i > 5 else 0.4} for i in range(927)]
    step, high = look(rose).exploded
    assert 790 < step < 820
    assert high == pytest.approx(1.44, abs=0.02)


def test_a_reward_that_was_hardly_ever_there_has_not_died():
    """aaravarora01/agent-memory-redteam: one right answer in sixteen, now and then."""
    rare = [{"step": i, "reward": 1 / 16 if i in (0, 2, 4, 30, 70) else 0.0} for i in range(100)]
    assert look(rare).died is None
    dead = [{"step": i, "reward": 0.5 + 0.1 * (i % 3) if i < 40 else 0.0} for i in range(100)]
    assert look(dead).died is not None


def test_probabilities_that_differ_are_told():
    """verl's training/rollout_probs_diff_mean is a difference of probabilities, not of their logarithms."""
    run = [{"step": i, "entropy": 0.5, "mismatch/probs_diff": 0.25} for i in range(30)]
    assert "ngine and trainer differ by 0.25 in the probability of a token" in look(run).told
    assert not look([line | {"mismatch/probs_diff": 0.01} for line in run]).levels


def test_bursts_in_some_batches_are_an_explosion():
    """As in a public run of TRL: from a step on, every third batch has an entropy of several nats."""
    calm = [0.3, 0.25, 0.2, 0.25] * 25
    happened = look(run([*calm, *[0.1, 4.0, 0.2] * 20]))
    assert happened.exploded == (101, 4.0)
    assert look(run([*calm, *[0.1, 0.7, 0.2] * 20])).exploded is None, "three times, but not half a nat"
    assert look(run([*calm, *[0.1, 0.2, 0.15, 0.2, 0.1, 4.0] * 10])).exploded is None, "one batch in six"


def test_an_entropy_that_fell_and_ends_above_its_start_has_exploded():
    """A public run fell from .92 nats to .05, and was at 2.45 when its log ended, in ten steps."""
    end = [0.95, 1.2, 1.5, 1.7, 2.0, 2.3, 2.4]
    fallen = [0.9] * 10 + [0.1] * 60
    assert look(run([*fallen, *end])).exploded == (72, 2.0)
    assert look(run([*[0.9] * 70, *end])).exploded is None
    assert look(run([*fallen, *end[:4]])).exploded is None


def test_a_gradient_that_grows_and_a_reward_that_halves():
    """As in a public run of XTuner: nothing is dead or NaN, and the policy is lost."""
    norm = [0.1] * 100 + [8.0, 20.0, 20.0, 30.0, 40.0] * 4
    reward = [0.5, 0.6] * 50 + [0.4] * 5 + [0.25, 0.2] * 7 + [0.2]
    happened = look(run([0.7] * 120, reward=reward, grad_norm=norm))
    assert happened.grown == Change(100, 0.1, 20.0)
    assert happened.dropped is not None
    assert 104 <= happened.dropped.step <= 106
    assert happened.died is None
    assert "the gradient's norm grew from 0.1 to 20 from step 100" in happened.told
    assert "he reward fell from" in happened.told
    assert [word for _, word in happened.marks] == ["gradient grew", "reward halved"]


@pytest.mark.parametrize(
    ("norm", "reward"),
    [
        ([0.1] * 50 + [5.0] * 20 + [0.1] * 30, [0.5] * 60 + [0.1] * 20 + [0.5] * 20),  # for a while
        ([0.1] * 50 + [0.9] * 50, [0.5] * 60 + [0.3] * 40),  # not by as much
        ([0.0] * 100, [-0.5] * 100),
        ([5.0] * 50 + [0.1] * 50, [0.1] * 50 + [0.5] * 50),  # the other way
        ([0.1] * 9, [0.5] * 9),
    ],
)
def test_other_courses_of_gradient_and_reward_are_not_told(norm, reward):
    happened = look(run([0.7] * len(norm), reward=reward, grad_norm=norm))
    assert (happened.grown, happened.dropped) == (None, None)


def test_responses_that_all_have_the_largest_length_are_cut_off():
    grow = [float(n) for n in range(858, 4096, 300)] + [4096.0] * 20
    assert look(run([1.0] * len(grow), response_length=grow)).levels == {"truncated": 1.0}
    assert look(run([1.0] * 31, response_length=[*[500.0] * 20, 501.0, *[500.0] * 10])).levels == {}
    assert look(run([1.0] * 30, response_length=[1.0] * 30)).levels == {}, "one token is asked for"


def test_one_long_response_of_a_small_batch_is_no_change_of_length():
    ends = [200.0, 35.5, 18.0, 20.0, 40.5], [31.0, 24.0, 32.5, 23.0, 23.0]  # means 62.8 and 26.7, medians 35.5 and 24
    assert look(run([1.0] * 30, response_length=[*ends[0], *[30.0] * 20, *ends[1]])).length is None
    swings = [10.0, 90.0, 10.0, 90.0, 10.0], [90.0, 10.0, 90.0, 10.0, 90.0]  # medians 10 and 90, means 42 and 58
    assert look(run([1.0] * 30, response_length=[*swings[0], *[30.0] * 20, *swings[1]])).length is None
    both = [60.0, 50.0, 70.0, 40.0, 60.0], [31.0, 24.0, 32.5, 23.0, 23.0]
    assert look(run([1.0] * 30, response_length=[*both[0], *[30.0] * 20, *both[1]])).length == (56.0, 26.7)
