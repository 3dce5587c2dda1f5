"""Facts and advice in words."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat.logs.diagnosis.facts import PINNED, measure
from entrostat.logs.diagnosis.words import DEFINITION, NO_RULE, sections, text
from entrostat.logs.runlog import HOLDS_WITHIN
from entrostat.settings.plain_yaml import load_yaml

DOCS = Path(__file__).parents[3] / "docs"


def lines(title, metrics, **given):
    """Return the sentences of a section."""
    return next(found.lines for found in sections(measure(metrics, **given)) if found.title == title)


def run(**columns):
    values = {"entropy": np.where(np.arange(40) < 20, 1.0, 0.1), **columns}
    return [{"step": step, **{name: float(of[step]) for name, of in values.items()}} for step in range(40)]


def test_the_page_states_the_definitions():
    page = " ".join((DOCS / "diagnose.md").read_text(encoding="utf-8").split())
    assert DEFINITION.removeprefix("Collapse: ").removesuffix(".") in page
    assert f"within {HOLDS_WITHIN:.0%} of the target" in page
    assert PINNED == 0.9
    assert "for nine tenths of the last third" in page


def test_what_is_missing_names_the_setting_that_logs_it():
    found = measure([{"step": 0, "reward": 0.5}])
    said = text(found)
    for setting in ("--actor.entropy_coef 0", "calculate_log_probs=True", "actor/pg_clipfrac", "val_kwargs.n=8"):
        assert setting in said
    assert said.endswith(NO_RULE)


def test_the_settings_that_are_named_exist():
    """In verl's own configuration, and in llmtrain's."""
    import importlib.util

    from llmtrain.settings.presets import read_config

    if importlib.util.find_spec("verl") is None:
        pytest.skip("pip install --no-deps -c constraints.txt verl")
    (folder,) = importlib.util.find_spec("verl").submodule_search_locations
    rollout = load_yaml(Path(folder) / "trainer/config/_generated_ppo_trainer.yaml")["actor_rollout_ref"]["rollout"]
    assert "calculate_log_probs" in rollout
    assert "n" in rollout["val_kwargs"]
    assert read_config(["--rollout.name", "vllm", "--eval.every", "5"], "x").rollout.name == "vllm"


def test_names_that_are_not_known_are_asked_about():
    asked = lines("In short", [{"step": s, "pi/entropy_mean": 1.0, "Score": 0.5, "prob_diff": 0.1} for s in range(9)])
    assert asked[1:] == (
        "No entropy is logged under a known name: is “pi/entropy_mean” it? --entropy pi/entropy_mean",
        "No reward is logged under a known name: is “Score” it? --reward Score",
        "No difference between engine and trainer is logged under a known name: is “prob_diff” it? --gap prob_diff",
    )
    said = text(measure([{"step": s, "pi/entropy_mean": 1.0, "prob_diff": 0.1} for s in range(9)]))
    assert "No entropy is logged. " not in said
    assert "No mismatch" not in said


def test_an_entropy_that_is_zero_from_the_start_was_not_measured():
    assert lines("In short", run(entropy=np.zeros(40)))[0].startswith("The first entropy is not positive")
    assert "not positive" not in lines("In short", run())[0]


def test_zeros_before_the_first_entropy_hide_no_fall():
    falls = np.concatenate([[0.0], np.full(20, 0.5), np.full(20, 0.02)])
    assert lines("In short", run(entropy=falls)) == (
        "Entropy fell from 0.5 nats to 0.02 by step 21.",
        "The first entropy is 0 and left out as not measured.",
        "Read from entropy.",
    )
    assert lines("Collapse", run(entropy=falls))[0] == "Collapsed at step 21."
    twice = lines("In short", run(entropy=np.concatenate([np.zeros(2), np.full(40, 0.5)])))
    assert twice[0].startswith("Nothing of note")
    assert twice[1] == "The first 2 entropies are 0 and left out as not measured."


def test_a_policy_that_is_certain_from_the_start_is_not_healthy():
    said = "The entropy is below 0.01 nats in {} of the steps, so nearly every token is certain."
    assert lines("In short", run(entropy=np.full(40, 0.004)))[0] == said.format("100%")
    assert lines("In short", run(entropy=np.repeat([0.02, 0.009, 0.02, 0.009], 10)))[0] == said.format("77%")
    assert lines("In short", run(entropy=np.full(40, 0.011)))[0].startswith("Nothing of note")
    fell = lines("In short", run(entropy=np.repeat([0.5, 0.004], 20)))
    assert fell[0].startswith("Entropy fell from 0.5 nats")
    assert "certain" not in " ".join(fell)


def test_an_entropy_in_other_units_is_told_before_that_nothing_happened():
    healthy = lines("In short", run(entropy=np.full(40, 300.0)))
    assert healthy[0].startswith("The entropy is above 13 nats throughout")
    assert healthy[1].startswith("Nothing of note")
    fell = lines("In short", run(entropy=np.where(np.arange(40) < 20, 300.0, 20.0)))
    assert fell[0].startswith("Entropy fell from 300 nats to 20")
    assert fell[1].startswith("The entropy is above 13 nats throughout")
    negative = lines("In short", run(entropy=-np.ones(40)))
    assert negative[0].startswith("The entropy is negative throughout")
    assert "not positive" not in " ".join(negative)


def test_an_entropy_that_ends_or_fell_from_a_peak_is_not_called_uncollapsed():
    ended = [{"step": s, "reward": 0.5, **({"entropy": 1.0} if s < 30 else {})} for s in range(40)]
    assert lines("In short", ended)[0].startswith("Entropy is not logged from step 30 of 40")
    assert lines("Collapse", ended)[0] == "Cannot be told: the entropy is not logged from step 30 of 40."
    peak = lines("Collapse", run(entropy=np.repeat([0.3, 0.8, 0.2, 0.2], 10)))
    assert peak[0] == "No collapse by its first value: it fell from a peak, and not to a third of where it began."


def test_what_is_read_is_named():
    assert lines("In short", run(reward=np.ones(40)))[1] == "Read from entropy, reward."


def test_few_entropies_and_odd_ones():
    assert lines("Collapse", run()[:4]) == ("Cannot be told: 10 entropies are needed, 4 are logged.",)
    assert lines("Collapse", run(entropy=-np.ones(40))) == ("Cannot be told: the first are not positive.",)
    assert lines("Collapse", run(entropy=np.ones(40)))[0] == "No collapse."
    assert lines("Collapse", run())[0] == "Collapsed at step 20."
    assert lines("Collapse", run(entropy=np.arange(40) + 1.0))[0] == "Not collapsed at the end: it exploded."
    lost = [{"step": s, "entropy": 1.0 if s < 30 else None} for s in range(40)]
    assert lines("Collapse", lost)[0] == "Cannot be told: the entropy is not a number from step 30."


def test_the_law_and_its_null():
    entropy = 0.1 + 1.4 * np.exp(-np.arange(40) / 10)
    yes = lines("Does entropy predict reward?", run(entropy=entropy, reward=0.9 - 0.2 * np.exp(entropy)))
    assert yes[0] == "Entropy predicts reward in this run."
    assert "R² 1.00" in yes[1]
    step = np.arange(40) / 100
    no = lines("Does entropy predict reward?", run(entropy=entropy, reward=step))
    assert no[0] == "Not shown by this run."
    assert "they cannot be told apart" not in no[2]
    noise = np.random.default_rng(0).random(40)
    alike = lines("Does entropy predict reward?", run(entropy=entropy, reward=noise))
    assert "they cannot be told apart" in alike[2]


def test_breadth_is_told_apart_only_by_intervals():
    metrics = run()
    for step, low, high in ((0, 0.3, 0.5), (39, 0.6, 0.8)):
        metrics[step] |= {"eval/pass@8": (low + high) / 2, "eval/pass@8/low": low, "eval/pass@8/high": high}
    (rose,) = lines("Breadth (pass@k)", metrics)
    assert rose.endswith("It rose.")
    metrics[39]["eval/pass@8/low"] = 0.4
    assert lines("Breadth (pass@k)", metrics)[0].endswith("They cannot be told apart.")
    del metrics[39]["eval/pass@8/low"]
    assert "no intervals are logged" in lines("Breadth (pass@k)", metrics)[0]


METRICS = (
    "entropy",
    "reward",
    "clip_fraction",
    "thermostat/target",
    "eval/pass@8",
    "eval/pass@8/low",
    "eval/pass@8/high",
)
TARGETS = st.none() | st.floats(0, 5) | st.floats(min_value=0, allow_infinity=False)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.none() | st.integers(-(2**62), 2**62)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(METRICS), NUMBERS), max_size=30),
    st.none() | st.floats(0, 5) | st.floats(min_value=0, allow_infinity=False),
)
def test_any_log_is_told(rows, target):
    metrics = [{"step": step, **row} for step, row in enumerate(rows)]
    said = text(measure(metrics, target=target))
    assert "What to try" in said
    assert said.count("\nBreadth") == 1


def test_it_ends_with_how_to_go_on():
    """From a checkpoint before the first event; nothing is said where nothing is advised."""
    said = text(measure(run())).rpartition("To go on from a checkpoint")[2]
    assert said.startswith(", one from before step 20 if there is one")
    for words in (
        'resume_from_checkpoint="FOLDER/checkpoint-N"',
        "trainer.resume_from_path=FOLDER",
        "--model.path MODEL",
    ):
        assert words in said
    assert "To go on" not in text(measure(run(entropy=np.ones(40))))
