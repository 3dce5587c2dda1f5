"""Advice follows from facts and evidence; without evidence there is none."""

import json
from pathlib import Path

import pytest

from entrostat.logs.diagnosis import evidence
from entrostat.logs.diagnosis.advice import advise, of_law, rounded, rules
from entrostat.logs.diagnosis.facts import CONDITIONS, measure
from entrostat.logs.diagnosis.words import NO_EVIDENCE, told


def run(late, start=1.0, **others):
    """Return metrics whose entropy falls from `start` to `late` at step 20."""
    return [{"step": step, "entropy": start if step < 20 else late, **others} for step in range(40)]


def names(facts):
    return [one.rule.name for one in advise(facts)]


@pytest.fixture
def results(monkeypatch, tmp_path):
    """Return a function that replaces the results of studies in this test."""

    def replace(change):
        found = json.loads(evidence.PATH.read_text(encoding="utf-8"))
        change(found)
        (tmp_path / "evidence.json").write_text(json.dumps(found))
        monkeypatch.setattr(evidence, "PATH", tmp_path / "evidence.json")
        evidence.results.cache_clear()

    yield replace
    evidence.results.cache_clear()


def entry(controller, verdicts=("higher", evidence.ALIKE, evidence.ALIKE), **args):
    scores = {
        score: {"difference": 0.1, "half": 0.05, "verdict": verdict}
        for score, verdict in zip(evidence.SCORES, verdicts, strict=True)
    }
    return {"controller": controller, "args": args, "entropy": 0.2, **scores}


def test_a_collapse_without_a_target():
    found = measure(run(0.1))
    assert names(found) == ["penalty", "solved penalty", "solved bonus"]
    assert names(measure(run(0.1, **{"clip/high": 0.0}))) == [*names(found), "wider clip"]
    assert names(measure(run(0.1, **{"clip/high": 0.1}))) == [*names(found), "clipped tokens"]


def test_a_run_is_not_told_to_take_what_it_has():
    assert names(measure(run(0.1), {"controller": "ppo+kl_ref"})) == ["solved penalty", "solved bonus"]


def test_other_courses():
    assert names(measure(run(0.9))) == ["entropy is there"]
    assert names(measure(run(1.9))) == ["entropy rose", "entropy is there"]
    assert names(measure(run(0.9), target=0.95)) == ["grip"]
    assert names(measure(run(0.1), target=0.95)) == ["no grip"]
    assert names(measure([])) == []


@pytest.mark.parametrize(
    ("metrics", "asked"),
    [
        (run(9.0), ["exploded"]),
        (run(None), ["numbers lost"]),
        (run(1.0, **{"mismatch/logp_gap": 0.2}), ["engines differ", "entropy is there"]),
        (run(1.0, **{"groups/no_signal": 0.97}), ["no signal", "entropy is there"]),
        (run(1.0, truncated=0.95), ["cut off", "entropy is there"]),
    ],
)
def test_events_have_their_advice(metrics, asked):
    """It begins with no evidence here, names public reports, and has nothing to paste."""
    found = advise(measure(metrics))
    assert [one.rule.name for one in found] == asked
    section = told(found[0])
    assert section.lines[0].startswith(f"{NO_EVIDENCE}: no committed study")
    assert any(line.startswith("Reported by others: ") for line in section.lines)
    assert not found[0].settings


def test_pass_at_k_alone_is_reason_enough():
    ends = [{"eval/pass@8": 0.6, "eval/pass@8/low": 0.5, "eval/pass@8/high": 0.7}]
    ends += [{"eval/pass@8": 0.3, "eval/pass@8/low": 0.2, "eval/pass@8/high": 0.4}]
    found = measure([{"step": step, **end} for step, end in enumerate(ends)])
    penalty, solved, _ = advise(found)
    assert penalty.settings
    assert '"target": "0.' in solved.settings["TRL"]  # no entropy is known: relative to the first rollout's
    assert "x" in solved.settings["llmtrain"].rpartition("target=")[2]


def test_the_range_is_what_pays_and_moves_with_the_start(results):
    def change(found):
        (study,) = (found["studies"]["countdown"],)
        study["start"] = 0.5
        study["entries"] = [
            entry("thermostat", mode="anchor", target=0.1, verdicts=("higher",) * 3),
            entry("thermostat", mode="anchor", target=0.2),
            entry("thermostat", mode="anchor", target=0.3),
            entry("thermostat", mode="anchor", target=0.4, verdicts=("higher", evidence.ALIKE, "lower")),
            entry("thermostat", mode="anchor", target="cosine(0.4, 0.1, 40)"),
            entry("thermostat", mode="bonus", target=0.2, verdicts=(evidence.ALIKE,) * 3),
        ]
        found["studies"] = {"countdown": study}

    results(change)
    penalty, solved, bonus = advise(measure(run(0.1, start=2.0)))
    assert solved.choice == "target from 0.4 to 1.2 nats; start with 0.8"
    assert "--set mode=anchor --set target=0.8" in solved.settings["llmtrain"]
    assert [penalty.settings, bonus.settings] == [{}, {}]
    assert told(bonus).title.startswith(NO_EVIDENCE)
    assert "cannot be told apart" in "\n".join(told(bonus).lines)


def test_what_a_second_study_refutes_is_not_supported(results):
    def change(found):
        first = dict(found["studies"]["countdown"], entries=[entry("kl_ref", beta=0.05), entry("kl_ref", beta=0.1)])
        second = dict(first, entries=[entry("kl_ref", beta=0.05, verdicts=("higher", "lower", "higher"))])
        found["studies"] = {"one": first, "two": second}

    results(change)
    assert advise(measure(run(0.1)))[0].choice == "beta 0.1"


def test_loops_that_miss_support_nothing(results):
    def change(found):
        for page in found["pages"].values():
            for row in page["held"]:
                row["target error"] = row["target"]

    results(change)
    (missed,) = advise(measure(run(0.1), target=0.95))
    assert (missed.found.supports, missed.settings) == (False, {})


def test_without_evidence_it_says_so_and_gives_nothing_to_paste():
    for rule in rules():
        if rule.evidence["kind"] in ("none", "reported"):
            assert (rule.found().supports, rule.controller) == (False, "")
            assert bool(rule.found().lines) == (rule.evidence["kind"] == "reported")
    (unsure,) = advise(measure(run(0.9)))
    assert told(unsure).title == "No evidence here to “Control the entropy”"


def test_the_laws_price():
    """R = .9 − .2·e^H: holding 1 nat instead of the late entropy costs .2·(e − e^H)."""
    from math import e, exp

    metrics = [
        {"step": s, "entropy": (h := 0.1 + 1.4 * exp(-s / 20)), "reward": 0.9 - 0.2 * exp(h)} for s in range(200)
    ]
    found = measure(metrics)
    assert f"cost {0.2 * (e - exp(found.entropy.late)):.3f}" in of_law(found, 1.0)
    assert of_law(found, found.entropy.late) == ""
    assert of_law(measure(run(0.1)), 1.0) == ""
    assert of_law(found, 1e6) == ""


def test_rules_are_whole():
    assert len({rule.name for rule in rules()}) == len(rules())
    asked = {name for rule in rules() for group in rule.when for name in group}
    assert asked == set(CONDITIONS)
    for rule in rules():
        assert rule.source
        assert rule.changes
        assert bool(rule.controller) == bool(rule.moves)
        for text in (rule.advice, rule.source, rule.price, rule.changes):
            assert not any(character.isdigit() for character in text.replace("pass@8", "").replace("avg@8", ""))


def test_a_rule_with_an_unknown_condition_is_refused(monkeypatch, tmp_path):
    from entrostat.logs.diagnosis import advice

    text = advice.PATH.read_text(encoding="utf-8").replace("when: [target held]", "when: [targte held]")
    (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(advice, "PATH", Path(tmp_path / "rules.yaml"))
    with pytest.raises(ValueError, match=r"rule grip: unknown condition targte held"):
        rules.__wrapped__()


def test_two_significant_digits():
    assert [rounded(x) for x in (0.123, 1.26, 126.0, 0.0)] == [0.12, 1.3, 130.0, 0.0]
