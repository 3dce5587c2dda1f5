"""Names that are not known: near ones are told, and those that the name is a part of."""

import pytest

from entrostat.settings.choosing import unknown

NAMES = ("thm1-centred", "thm2-natural-gradient", "law-fit", "law-prediction")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("LAW-fits", "unknown claim 'LAW-fits'; did you mean law-fit?"),
        ("law-fits", "unknown claim 'law-fits'; did you mean law-fit?"),
        ("thm2", "unknown claim 'thm2'; did you mean thm2-natural-gradient?"),
        ("predict", "unknown claim 'predict'; did you mean law-prediction?"),
        ("fa", f"unknown claim 'fa'; choose from {', '.join(NAMES)}"),
        ("xyz", f"unknown claim 'xyz'; choose from {', '.join(NAMES)}"),
    ],
)
def test_a_name_that_is_not_known(name, told):
    assert unknown("claim", name, NAMES) == told
