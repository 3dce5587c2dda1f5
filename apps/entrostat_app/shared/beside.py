"""A bandit's controls beside what they make: both in one fragment, so that a slider reruns nothing else of the page.

A fragment of Streamlit cannot draw controls in the page's sidebar.
"""

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PANEL = "panel"
"""Key of the container with the controls, and so part of its class in the page."""
WIDTH, NARROW = 272, 900
"""Width of the controls, and of the narrowest page with room for pictures beside them, pixels."""
STYLE = f"""
.st-key-beside {{ flex-wrap: nowrap; align-items: flex-start }}
:has(> .st-key-{PANEL}) {{
  flex: 0 0 {WIDTH}px; position: sticky; top: 3.8rem; max-height: calc(100vh - 4.8rem); overflow-y: auto;
}}
.st-key-{PANEL} {{ flex-shrink: 0; gap: .6rem }}
:has(> .st-key-stage) {{ min-width: 0 }}
@media (max-width: {NARROW - 1}px) {{
  .st-key-beside {{ flex-direction: column; align-items: stretch }}
  :has(> .st-key-{PANEL}) {{ order: 2; position: static; flex: auto; max-height: none }}
  :has(> .st-key-{PANEL}), .st-key-{PANEL} {{ width: 100% !important }}
}}
"""
"""Style sheet: the controls stay in sight while the pictures scroll; on a narrow page they are below the pictures."""


def beside() -> "tuple[DeltaGenerator, DeltaGenerator]":
    """Return two new containers side by side: of the controls, and of what they make. For fragments; one per page."""
    st.html(f"<style>{STYLE}</style>")
    row = st.container(horizontal=True, key="beside", gap="medium")
    return row.container(key=PANEL, width=WIDTH), row.container(key="stage", width="stretch")
