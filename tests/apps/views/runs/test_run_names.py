"""Short names of runs."""

import pytest

from entrostat_app.views.runs.run_names import shortened


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["grid/lr1/grpo", "grid/lr1/steer"], ["grpo", "steer"]),
        (["sweep-lr1-grpo", "sweep-lr1-steer"], ["…grpo", "…steer"]),
        (["a/x", "b/x", "y"], ["a/x", "b/x", "y"]),
        (["ab-1", "ab-2"], ["ab-1", "ab-2"]),
        (["grid/lr1/grpo"], ["grpo"]),
        (["a-longer-name", "a-longer-name-2"], ["…name", "…name-2"]),
        ([], []),
    ],
)
def test_what_differs_is_left(names, short):
    assert shortened(names) == dict(zip(names, short, strict=True))
