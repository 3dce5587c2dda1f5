"""Shorter garbage collection: Streamlit collects after each run of the script and sends nothing to the browser then."""

import gc
from functools import cache


@cache
def spare_modules() -> None:
    """Exclude existing objects from garbage collection, once: searching the modules takes 0.2 s and frees nothing."""
    gc.collect()
    gc.freeze()
