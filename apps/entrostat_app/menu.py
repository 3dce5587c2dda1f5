"""The pages in the order of the menu; each is imported when it is first shown."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import streamlit as st


@dataclass(frozen=True)
class Page:
    """An entry of the menu."""

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
    "learn": Page("learn", "Learn", ":material/school:"),
}
"""By path; the first one is shown where the URL names none."""


def address(path: str) -> str:
    """The path in the URL: Streamlit has none for the first page."""
    return "" if path == next(iter(PAGES)) else path


def streamlit_page(path: str) -> Any:
    """The page as Streamlit's menu and links take it; made anew in each run of the script."""
    page = PAGES[path]
    return st.Page(page.draw, title=page.title, icon=page.icon, url_path=path, default=not address(path))
