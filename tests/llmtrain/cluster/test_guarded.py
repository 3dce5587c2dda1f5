"""Guards of a learner elsewhere are told on the terminal, once each."""

from llmtrain.cluster.topology import guarded


def test_a_guard_is_told_when_it_first_acts():
    told: set[str] = set()
    lines = [
        {"step": 3.0, "guard/loss": 0.0, "reward": 1.0},
        {"step": 4.0, "guard/non_finite": 1.0, "guard/skipped": 1.0, "guard/roll_backs": 2.0},
        {"step": 5.0, "guard/non_finite": 1.0, "guard/skipped": 1.0},
        {"step": 6.0, "guard/entropy": 1.0},
    ]
    assert [said for line in lines for said in guarded(line, told)] == [
        "guard: non_finite in step 4; the update is left out",
        "guard: entropy in step 6; training goes on",
    ]
