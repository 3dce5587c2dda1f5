"""Environments of one's own: read from a file, run, and refused by name."""

import numpy as np
import pytest
import yaml

from toybandit import ENVIRONMENTS, Config, simulate
from toybandit.environment_file import read_environment

OWN = """
base: noisy
success: [[.9, .2, .2], [.2, .9, .2]]
logits: [0, 0, 3]
logit_std: 0
kernel: [[1, .5], [.5, 1]]
rollouts: 3
"""


@pytest.fixture
def write(tmp_path):
    def to(text: str) -> str:
        path = tmp_path / "own.yaml"
        path.write_text(text)
        return str(path)

    return to


def test_tables_say_how_many_states_and_arms(write):
    environment = read_environment(write(OWN))
    assert (environment.states, environment.arms, environment.right_arms) == (2, 3, 3)
    assert environment.group == ENVIRONMENTS["noisy"].group
    run = simulate(Config(env=write(OWN)), [0, 1])
    np.testing.assert_array_equal(run.success[1], [[0.9, 0.2, 0.2], [0.2, 0.9, 0.2]])
    p = np.exp([0, 0, 3]) / np.exp([0, 0, 3]).sum()
    assert run.entropy[0, 0] == pytest.approx(-(p * np.log(p)).sum(), rel=1e-12)


def test_label_noise(write):
    path = write("{base: det, label_noise: .2}")
    assert read_environment(path).label_noise == 0.2
    assert Config(env=path, label_noise=0.0).environment() == ENVIRONMENTS["det"]


def test_probabilities_from_a_beta_prior_are_the_runs_own(write):
    path = write("base: noisy\nsuccess_beta: [2, 6]\nstates: 200\nrollouts: 1\n")
    both, alone = simulate(Config(env=path), [3, 4]), simulate(Config(env=path), [4])
    np.testing.assert_array_equal(both.success[1], alone.success[0])
    assert both.success.mean() == pytest.approx(0.25, abs=0.01)
    assert both.success.var() == pytest.approx(2 * 6 / (8**2 * 9), rel=0.1)


def test_a_kernel_of_ones_own(write):
    once = OWN.replace("rollouts: 3", "rollouts: 1\npasses: 1")
    kernel, plain = (
        simulate(Config(env=write(once.replace("[[1, .5], [.5, 1]]", table))), [0]).logits
        for table in ("[[1, .5], [.5, 1]]", "[[1, 0], [0, 1]]")
    )
    start = np.array([0.0, 0.0, 3.0])
    np.testing.assert_allclose(kernel - start, np.array([[1, 0.5], [0.5, 1]]) @ (plain - start), rtol=0, atol=1e-14)


def test_resolved_needs_the_file_no_more(write, tmp_path):
    config = Config(env=write(OWN))
    again = yaml.safe_load(yaml.safe_dump(config.resolved()))
    (tmp_path / "own.yaml").unlink()
    assert again["env"] == "custom"
    config = Config(**again)
    assert config.environment().success == ((0.9, 0.2, 0.2), (0.2, 0.9, 0.2))
    assert Config(**config.resolved()).environment() == config.environment()


def test_words_are_what_they_look_like(write):
    environment = Config(env=write("base: on\nlr: 1e-3\nlogits: [0, 0, 3]")).environment()
    assert environment.passes == 1
    assert environment.lr == 1e-3
    assert environment.logits == ((0.0, 0.0, 3.0),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: noisi", "unknown base 'noisi'; did you mean noisy"),
        ("stats: 3", "unknown key stats; did you mean states?"),
        ("xyzzy: 3", "unknown key xyzzy; choose from advantage, arms"),
        ("success: [[.5, 1.5]]", "success must lie in [0, 1]; got [[0.5, 1.5]]"),
        ("success: [[.5, .5], [.5]]", "success, row 1, must be 2 numbers; got 1"),
        ("success: [[.5, x]]", "success[0][1] must be a valid number; got 'x'"),
        ("success: [[.5, .5]]\nsuccess_beta: [1, 1]", "give only one"),
        ("success_beta: [1]", "success_beta[1] must be given; got (1,)"),
        ("states: 3\nlogits: [[1, 2], [3, 4]]", "logits must be 1 row or 3"),
        ("states: 2\nkernel: [[1, 0]]", "kernel must be 2 rows; got 1"),
        ("states: 2\nkernel: [[1, 0], [0, 1, 0]]", "kernel, row 1, must be 2 numbers; got 3"),
        ("- 1", "expected keys and values"),
        ("# base: noisy", "expected keys and values"),
        ("a: [", "not plain YAML"),
        ("lr: [0.1, -1]", "lr must be positive"),
        ("states: many", "states must be a valid integer"),
        ("states: 2.5", "states must be a valid integer"),
        ('states: "4"', "states must be a valid integer"),
        ("arms: 3.0", "arms must be a valid integer"),
        ("arms: many", "arms must be a valid integer"),
        ("group: 2.5", "group must be a valid integer"),
        ("rollouts: 2.0", "rollouts must be a valid integer"),
        ("lr: abc", "lr must be a valid number"),
        ('lr: "0.5"', "lr must be a valid number"),
        ("lr: [0.1, .inf]", "lr must be finite; got [0.1, inf]"),
        ("success_beta: [a, b]", "success_beta[0] must be a valid number; got 'a'"),
        ("success_beta: [1, .inf]", "success_beta must be finite; got [1, inf]"),
        ("success: 3", "success must be a list"),
        ("success: {a: 1}", "success must be a list"),
        ("logits: [0, .nan]", "logits must be a number, not NaN; got ([0, nan],)"),
        ("states: 2\nkernel: [[1, .nan], [0, 1]]", "kernel must be a number, not NaN; got [[1, nan], [0, 1]]"),
        ("right_logit: .inf", "right_logit must be finite; got inf"),
        ("coupling: true", "coupling must be a valid number"),
        ("advantage: 3", "advantage must be text; got 3"),
        ("base: [noisy]", "unknown base ['noisy']"),
        ("length: 9\nbranching: 16", "states, arms, length and branching make over 16777216 logits"),
        ("states: 4097\ncoupling: 0.1", "coupling of 4097 states takes over 16777216 numbers: lower states"),
        ("length: 100000000", "states, arms, length and branching make over 16777216 logits"),
        ("length: 10000000\nbranching: 2", "states, arms, length and branching make over 16777216 logits"),
    ],
)
def test_bad_files_are_named(write, text, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        Config(env=write(text))
    assert message in str(caught.value)
    assert "own.yaml" in str(caught.value)


def test_a_missing_file():
    with pytest.raises(ValueError, match=r"nowhere\.yaml: No such file"):
        Config(env="nowhere.yaml")
