"""Pages in menu order; each is imported when it is first shown."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import streamlit as st


@dataclass(frozen=True)
class Page:
    """Entry of the menu."""

    folder: str
    """Folder in `views`; its module of the same name has the function `page`."""
    title: str
    icon: str

    def draw(self) -> None:
        """Draw the page."""
        import_module(f"entrostat_app.views.{self.folder}.{self.folder}").page()


PAGES = {
    "playground": Page("playground", "Playground", ":material/play_circle:"),
    "compare": Page("compare", "Compare", ":material/compare_arrows:"),
    "theorems": Page("theorems", "Theorems", ":material/functions:"),
    "control-room": Page("control_room", "Control room", ":material/tune:"),
    "quadrants": Page("quadrants", "Quadrants", ":material/grid_view:"),
    "runs": Page("runs", "Runs", ":material/folder_open:"),
    "probes": Page("probes", "Probes", ":material/call_split:"),
    "learn": Page("learn", "Learn", ":material/school:"),
    "plan": Page("plan", "Plan", ":material/request_quote:"),
}
"""Pages by URL path; the first one is shown if the URL names none."""


def address(path: str) -> str:
    """Return the page's path in the URL: empty for the first page, as Streamlit requires."""
    return "" if path == next(iter(PAGES)) else path


def streamlit_page(path: str) -> Any:
    """Return the page as an object for Streamlit's menu and links; a new one in each run of the script."""
    page = PAGES[path]
    return st.Page(page.draw, title=page.title, icon=page.icon, url_path=path, default=not address(path))
