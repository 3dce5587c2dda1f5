"""Objects that exist when a page is first drawn are excluded from garbage collection."""

import gc

import pytest
from streamlit.testing.v1 import AppTest

from entrostat_app.menu import SCRIPT
from entrostat_app.shared.garbage import spare_modules


@pytest.mark.slow
def test_modules_are_spared():
    spare_modules.cache_clear()
    objects = [[] for _ in range(10_000)]
    before = gc.get_freeze_count()
    assert not AppTest.from_file(str(SCRIPT), default_timeout=60).run().exception
    assert gc.get_freeze_count() >= before + len(objects)
    assert len(gc.get_objects()) < gc.get_freeze_count()
