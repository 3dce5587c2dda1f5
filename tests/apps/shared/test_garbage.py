"""Objects that exist when a page is first drawn are excluded from garbage collection."""

import gc

import pytest
from streamlit.testing.v1 import AppTest

from entrostat_app.launch import MAIN
from entrostat_app.shared.garbage import spare_modules


@pytest.mark.slow
def test_modules_are_spared():
    spare_modules.cache_clear()
    gc.unfreeze()
    assert gc.get_freeze_count() == 0
    assert not AppTest.from_file(str(MAIN), default_timeout=60).run().exception
    spared = gc.get_freeze_count()
    assert spared > 50_000  # objects of torch, pandas and Streamlit
    assert len(gc.get_objects()) < spared
    # they stay spared: each full collection of the tests that follow would go through them
