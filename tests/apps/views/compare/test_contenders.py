"""Contenders: lines of text, their meaning and their errors."""

import warnings

import pytest

from entrostat import CompositionWarning
from entrostat_app.launch import ENVIRONMENTS as ENVIRONMENTS_OF_FILES
from entrostat_app.views.compare.contenders import MOST, Contender, options, parse, parse_all, pinned
from toybandit import ENVIRONMENTS, Config

PAGE = {"env": "noisy", "lr": 1.0, "group": 8, "passes": 2, "states": 4, "rollouts": 20}
OTHER = {"env": "exact", "lr": 3.0, "group": 8, "passes": 5, "states": 2, "rollouts": 60}


def test_a_line_is_a_configuration():
    found = parse("clip_higher+entropic kp=2 tau=0 auto=true", PAGE, 0.7)
    assert found.name == "clip_higher+entropic kp=2 tau=0 auto=true"
    wanted = {"kp": 2, "tau": 0, "auto": True}
    assert found.config == Config(**PAGE, controller="clip_higher+entropic", controller_args=wanted, target=0.7)
    assert found.has_target


def test_a_name_a_target_and_numbers_of_the_bandit():
    found = parse("  my own :  thermostat mode=both target=0.9 env=det lr=1e-1 states=2 coupling=.5", PAGE, 0.7)
    assert found.name == "my own"
    config = found.config
    assert (config.target, config.env, config.lr, config.states, config.coupling) == (0.9, "det", 0.1, 2, 0.5)
    assert (config.passes, config.controller_args) == (2, {"mode": "both"})


def test_the_target_is_for_those_that_hold_one():
    assert parse("grpo", PAGE, 0.7).config.target is None
    assert parse("positive_reweight", PAGE, 0.7).config.target == 0.7
    assert parse("positive_reweight variant=stage", PAGE, 0.7).config.target is None
    both = parse("entropic+adaptive_entropy entropic.target=0.4 adaptive_entropy.target=0.4", PAGE, 0.7)
    assert both.config.target is None


def test_a_key_that_the_controller_has_is_its_own():
    assert parse("unlikeliness advantage=rloo", PAGE).config.controller_args == {"advantage": "rloo"}
    assert parse("grpo advantage=rloo", PAGE).config.advantage == "rloo"


def test_enumerated_outcomes_have_no_group():
    assert parse("grpo env=exact", PAGE).config.group is None
    assert parse("grpo", OTHER).config.group is None
    assert parse("grpo env=noisy", OTHER).config.group == 8


@pytest.mark.parametrize("line", options())
def test_every_option_can_be_pinned(line):
    """A pinned line gives the same run on any page."""
    found = parse(line, PAGE, 0.7)
    again = parse(pinned(found, "as it was"), OTHER, 0.1)
    assert again.name == "as it was"
    assert again.config.resolved() == found.config.resolved()
    assert again.has_target == found.has_target


@pytest.mark.parametrize(
    "line",
    [
        "grpo env=exact",
        "grpo env=on update=npg right_logit=1.5 reward_right=0.9",
        "entropic entropic.target=0.3",
        "entropic target=linear(1.2, 0.4x, 30) kp=piecewise(0: 1, 5: 2)",
        "steer preset=released",
        "grpo dual_clip=inf eps_high=0.3",
        "thermostat one_sided=true",
        "grpo env=episodes length=2",
    ],
)
def test_whatever_a_line_sets_is_pinned(line):
    found = parse(line, PAGE, 0.7)
    assert parse(pinned(found, "x"), OTHER, 0.1).config.resolved() == found.config.resolved()
    assert found.config.resolved() != parse(line.split()[0], PAGE, 0.7).config.resolved()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("entropc kp=1", "^entropc kp=1: .*'entropc'; .*entropic"),
        ("mine: entropic kpp=1", "^mine: .*'kpp'; .*kp"),
        ("grpo env=dett", "'dett'; .*det"),
        ("grpo qqqq=1", "'qqqq'; "),
        ("grpo lr", "key=value.*'lr'"),
        ("grpo lr=fast", "lr .*'fast'"),
        ("grpo lr=nan", "lr .*'nan'"),
        ("grpo states=2.5", "states .*'2.5'"),
        ("grpo lr=-1", "lr .*-1.0"),
        ("grpo lr=1 lr=2", "lr .*twice"),
        ("entropic kp=1 kp=2", "kp .*twice"),
        ("entropic kp=nan", "kp .*nan"),
        ("entropic kp=[1,2]", "key=value"),
        ("entropic kp=high", "entropic kp=high: "),
        ("grpo target=0.5", "'grpo' .*target"),
        ("grpo device=cuda", "'device'"),
        ("grpo env=/etc/passwd.yaml", "env '/etc/passwd.yaml'"),
        ("grpo env=mine.yaml", "env 'mine.yaml'"),
        ("grpo controller_args=x", "'controller_args'"),
        ("grpo arms=100000", "too large"),
        ("grpo length=17 branching=2", "too large .*length .*16$"),
        ("grpo length=100000", "too large .*length .*16$"),
        ("grpo passes=100000000000000000000", "too large .*passes .*256$"),
        ("grpo rollouts=1000000000", "too large .*rollouts .*10,000$"),
        ("grpo states=1000", "too large .*states × arms .*4,096$"),
        ("grpo group=1000000000", "too large .*states × group × length .*65,536$"),
        ("grpo states=200 rollouts=1000", "too large .*rollouts × states × arms .*2,000,000$"),
        ("positive_only+negative_only", "contradict"),
        ("grpo env=exact group=4", "no group"),
        ("name only:", "^name only: .*controller"),
        (": grpo", "1 to 60 letters"),
        ("[x](y): grpo", "1 to 60 letters"),
        ("", "name a controller"),
    ],
)
def test_what_is_wrong_in_one_line(line, names):
    with pytest.raises(ValueError, match=names) as error:
        parse(line, PAGE, 0.7)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("env", [e for e in ENVIRONMENTS if e != "episodes"])
def test_what_controls_can_ask_for_is_not_too_large(env):
    most = {"group": 64, "passes": 16, "states": 64, "rollouts": 400}
    assert parse("grpo", {**PAGE, **most, "env": env}).config.states == 64


def test_two_closed_loops_warn_and_run():
    line = "entropic+adaptive_entropy entropic.target=0.4 adaptive_entropy.target=0.4"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompositionWarning)
        assert isinstance(parse(line, PAGE, 0.7), Contender)


def test_a_line_leaves_or_enters_the_environment_features():
    """The page's features and learning rate are not those of another environment; what the line says holds."""
    shared = {"env": "features", "features": 8, "pool": 128, "lr": 0.2, "group": 4, "rollouts": 20}
    plain = parse("grpo env=det", shared).config
    assert (plain.features, plain.pool, plain.lr, plain.group) == (None, None, None, 4)
    assert parse("grpo env=features", PAGE).config.lr is None
    assert parse("grpo env=features lr=.3 features=2", PAGE).config.environment().features == 2
    assert parse("grpo env=features", shared).config.features == 8
    line = pinned(parse("grpo", shared), "kept")
    assert parse(line, PAGE).config.environment() == parse("grpo", shared).config.environment()


def test_all_lines_and_what_is_wrong_with_some():
    found, errors = parse_all(["grpo", " ", "stear", "b: grpo lr=2", "b: steer"], PAGE)
    assert [contender.name for contender in found] == ["grpo", "b"]
    assert [error.partition(":")[0] for error in errors] == ["stear", "b"]
    found, errors = parse_all([f"{k}: grpo" for k in range(MOST + 1)], PAGE)
    assert len(found) == MOST
    assert [error.partition(":")[0] for error in errors] == ["8"]


@pytest.mark.parametrize("name", ["", "a:b", "x" * 61, "<b>"])
def test_names_that_cannot_be(name):
    with pytest.raises(ValueError, match="1 to 60"):
        pinned(parse("grpo", PAGE), name)


def test_an_environment_of_a_file_that_was_named(tmp_path, monkeypatch):
    """A line and its pin have its numbers; a file that the app was not started with is an unknown environment."""
    own = tmp_path / "own.yaml"
    own.write_text("base: det\nstates: 3\nrollouts: 25\n")
    with pytest.raises(ValueError, match="unknown env"):
        parse(f"grpo env={own}", PAGE)
    monkeypatch.setenv(ENVIRONMENTS_OF_FILES, str(own))
    found = parse("grpo passes=3", {"env": str(own)})
    environment = found.config.environment()
    assert (environment.states, environment.rollouts, environment.passes) == (3, 25, 3)
    again = parse(pinned(found, "mine"), PAGE)
    assert again.config.environment() == environment
