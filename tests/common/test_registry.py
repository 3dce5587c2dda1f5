import json
import math
from dataclasses import fields

import numpy as np
import pytest
import torch

from entrostat import Controller, StepStats, chain, list_controllers, make
from entrostat.controllers import Entropic, Steer
from entrostat.registry import REGISTRY, register


def test_the_names_there_are():
    assert set(list_controllers()) >= {
        *("ppo", "grpo", "reinforce", "clip_higher", "clip_lower", "clip_tighter", "clip_free"),
        *("clip_cov", "kl_cov", "entropy_bonus", "adaptive_entropy", "positive_reweight", "steer", "opefo", "entropic"),
    }


def test_a_hyperparameter_goes_to_the_part_that_has_it():
    c = make("clip_higher+steer", preset="paper", lambda_min=0.6, eps_low=0.1)
    assert c.surrogate.eps_low == 0.1
    assert c.parts[0].lambda_min == 0.6
    assert make("steer", eps_high=0.5).surrogate.eps_high == 0.5


def test_a_part_may_be_named():
    c = make("adaptive_entropy+entropic", **{"entropic.target": 0.4, "adaptive_entropy.target": 0.3})
    assert [part.target for part in c.parts] == [0.3, 0.4]


WRONG = {
    "unknown controller 'stear'; did you mean steer or stare?": lambda: make("stear"),
    "unknown controller 'xyzzy'; choose from adapo, adaptive_clip, adaptive_entropy, ": lambda: make("xyzzy"),
    "unknown controller ''": lambda: make(""),
    "unknown preset 'best'; choose from paper, released": lambda: make("steer", preset="best"),
    r"no part of 'steer\+ppo' has the hyperparameter 'lamda': did you mean lambda_min or lambda_max": lambda: make(
        "steer", lamda=1
    ),
    r"has the hyperparameter '\.lambda_min': did you mean lambda_min": lambda: make("steer", **{".lambda_min": 0.5}),
    r"has the hyperparameter 'kp': steer has mapping, ": lambda: make("steer", kp=1),
    "'target' is ambiguous: adaptive_entropy and entropic have it": lambda: make("adaptive_entropy+entropic", target=1),
    "'lambda_min' is ambiguous": lambda: make("steer+steer", lambda_min=0.5),
    "'steer' appears twice": lambda: make("steer+steer"),
    "'ppo' and 'clip_higher' both decide the surrogate": lambda: make("ppo+clip_higher"),
    "steer: lambda_min must be a number, not 'abc'": lambda: make("steer", lambda_min="abc"),
    "entropic: tau must be a number, not True": lambda: make("entropic", tau=True),
    "entropic: auto must be true or false, not 1": lambda: make("entropic", auto=1),
    r"clip_higher: eps_high must be a number, not \[0.1\]": lambda: make("clip_higher", eps_high=[0.1]),
    "opefo: variant must be a name, not 2": lambda: make("opefo", **{"opefo.variant": 2}),
    "lambda_min of steer is set twice, as lambda_min and as steer.lambda_min: leave one out": lambda: make(
        "clip_higher+steer", lambda_min=0.8, **{"steer.lambda_min": 0.7}
    ),
    "'steer' is registered twice": lambda: register("steer")(Controller),
    "state is of controllers": lambda: make("entropic").load_state_dict(make("adaptive_entropy").state_dict()),
    "entropic: state has": lambda: Entropic().load_state_dict({"alpha": 1.0}),
}


@pytest.mark.parametrize(("message", "wrong"), WRONG.items())
def test_errors_name_the_parts(message, wrong):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_no_controller_takes_what_is_no_number():
    for name, cls in REGISTRY.items():
        for field in fields(cls):
            if type(field.default) is float:
                with pytest.raises(ValueError, match=f"{field.name} must be a number, not NaN"):
                    make(name, **{field.name: math.nan})


def test_a_number_may_be_of_numpy_or_a_tensor():
    kp, target = np.float32(0.5), torch.tensor([0.1, 0.2])
    part = make("entropic", kp=kp, target=target).parts[0]
    assert part.kp == kp
    assert part.target is target


def test_chain_flattens_and_keeps_the_surrogate():
    c = chain(make("clip_higher"), chain(Steer(lambda_min=0.5)), Entropic())
    assert c.name == "clip_higher+steer+entropic"
    assert chain(Steer()).surrogate.name == "ppo"


def test_state_of_a_chain():
    a, b = make("adaptive_entropy+positive_reweight"), make("adaptive_entropy+positive_reweight")
    a.parts[0].coef += 0.25
    b.load_state_dict(a.state_dict())
    assert b.state_dict() == a.state_dict()


LOOPS = [
    ("adaptive_entropy", {"target": 0.5}),
    ("positive_reweight", {"target": 0.5}),
    ("entropic", {"ema": 0.5}),
    ("entropic", {"auto": True}),
    ("aepo", {}),
    ("entrocraft", {}),
    ("thermostat", {}),
]
STEP = {"total_steps": 9, "planned": {"thermostat/flow": 0.02, "thermostat/updates": 2.0}}


def same_state(a: Controller, b: Controller) -> bool:
    first, second = (dict(*c.state_dict().values()) for c in (a, b))
    return all(first[key].dtype == second[key].dtype and torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize(("name", "settings"), LOOPS)
def test_state_goes_through_json(name, settings):
    """To the bit, with the types it had."""
    a, b = make(name, **settings), make(name, **settings)
    for step, entropy in enumerate((0.7, 0.6, 0.43)):
        a.observe(StepStats(entropy=entropy, step=step, **STEP))
    plain = {part: {key: x.tolist() for key, x in state.items()} for part, state in a.state_dict().items()}
    b.load_state_dict(json.loads(json.dumps(plain)))
    assert same_state(a, b)


def test_an_entropy_below_0_is_told():
    """Such as a loss of −H; a certain policy's 0 may be rounded to a little less."""
    for name in ("thermostat", "adaptive_entropy", "grpo"):
        with pytest.raises(ValueError, match=r"^StepStats\.entropy is -0\.4 nats"):
            make(name).observe(StepStats(entropy=-0.4))
        controller = make(name)
        for entropy in (-1e-5, 0.3, -0.2):  # a run that has collapsed does not end by rounding
            controller.observe(StepStats(entropy=entropy))


@pytest.mark.parametrize("entropy", [math.inf, -math.inf, math.nan, 1e300, -1e7])
@pytest.mark.parametrize(("name", "settings"), LOOPS)
def test_an_entropy_that_cannot_be_moves_nothing(name, settings, entropy):
    a, b = make(name, **settings), make(name, **settings)
    for seen in (0.7, 0.6, entropy):
        a.observe(StepStats(entropy=seen, step=1, **STEP))
        if seen in (0.7, 0.6):
            b.observe(StepStats(entropy=seen, step=1, **STEP))
    assert same_state(a, b)


def test_state_is_a_copy():
    c = make("entropic")
    saved = c.state_dict()
    c.parts[0].alpha += 1
    assert saved["entropic"]["alpha"] == 0


def test_every_controller_explains_itself():
    for name, cls in REGISTRY.items():
        assert cls.__doc__, name
        assert not cls.__doc__.startswith(cls.__name__ + "("), f"{name} has only the generated docstring"


def test_a_subclass_keeps_ranges_and_may_add_to_its_state():
    class Mine(Entropic):
        ki: float = 0.02

        def state_dict(self):
            return {**super().state_dict(), "extra": torch.tensor(3.0)}

        def load_state_dict(self, state):
            rest = dict(state)
            self.extra = rest.pop("extra")
            super().load_state_dict(rest)

    with pytest.raises(ValueError, match="ki must not be negative"):
        Mine(ki=-1.0)
    mine = Mine(auto=True)
    mine.load_state_dict(mine.state_dict())
    assert mine.extra == 3.0
