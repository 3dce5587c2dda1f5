"""Space for what is still being computed, so that the page does not jump when it comes."""

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def room(name: str, height: int) -> "DeltaGenerator":
    """Return a new container of at least this height (pixels). name: one that no other container on the page has."""
    key = f"room-{name}"
    st.html(f"<style>.st-key-{key} {{ min-height: {height}px }}</style>")
    return st.container(key=key)
