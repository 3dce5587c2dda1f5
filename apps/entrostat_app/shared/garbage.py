"""Streamlit looks for garbage after each run of the script, and nothing is sent to the browser meanwhile."""

import gc
from functools import cache


@cache
def spare_modules() -> None:
    """Take what exists out of the search, once. Of all the modules in use it takes a fifth of a second, in vain."""
    gc.collect()
    gc.freeze()
