"""The pages, in the order of the menu: a module each, with a function `page`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from . import compare, control_room, learn, playground, quadrants, runs, theorems


@dataclass(frozen=True)
class View:
    """A page of the menu."""

    page: Callable[[], None]
    title: str
    icon: str


PAGES = {
    "playground": View(playground.page, "Playground", ":material/play_circle:"),
    "compare": View(compare.page, "Compare", ":material/compare_arrows:"),
    "theorems": View(theorems.page, "Theorems", ":material/functions:"),
    "control-room": View(control_room.page, "Control room", ":material/tune:"),
    "quadrants": View(quadrants.page, "Quadrants", ":material/grid_view:"),
    "runs": View(runs.page, "Runs", ":material/folder_open:"),
    "learn": View(learn.page, "Learn", ":material/school:"),
}
"""By path; the first one is shown where the URL names none."""


def address(path: str) -> str:
    """The path in the URL: Streamlit has none for the first page."""
    return "" if path == next(iter(PAGES)) else path


def streamlit_page(path: str) -> Any:
    """The page as Streamlit's menu and links take it; made anew in each run of the script."""
    view = PAGES[path]
    return st.Page(view.page, title=view.title, icon=view.icon, url_path=path, default=not address(path))
