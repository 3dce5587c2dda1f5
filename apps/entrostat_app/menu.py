"""Pages in menu order; each is imported when it is first shown."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import streamlit as st

SCRIPT = Path(__file__).with_name("main.py")
"""Script that the server runs for each session."""
STYLE = """
[data-testid=stMainBlockContainer] { padding: 3.8rem 2rem 2rem }
[data-testid=stMainBlockContainer] > [data-testid=stVerticalBlock] { gap: .6rem }
[data-testid=stSidebarUserContent] [data-testid=stVerticalBlock] { gap: .6rem }
[data-testid=stCode] .token { color: inherit !important }
[class*=st-key-] > [data-testid=stSkeleton] { height: 4rem }
[data-testid=stMain] h1 { padding: .25rem 0; font-size: 1.7rem }
[data-testid=stMain] h2 { padding: .25rem 0 .6rem; font-size: 1.25rem }
"""
"""Style sheet of all pages: what matters on them fits a screen of 1280 × 800 pixels."""


@dataclass(frozen=True)
class Page:
    """Entry of the menu."""

    folder: str
    """Folder in `views`; its module of the same name has the function `page`."""
    title: str

    def draw(self) -> None:
        """Draw the page, with less space around it than Streamlit leaves."""
        st.html(f"<style>{STYLE}</style>")
        import_module(f"entrostat_app.views.{self.folder}.{self.folder}").page()


PAGES = {
    "learn": Page("learn", "Learn"),
    "playground": Page("playground", "Playground"),
    "compare": Page("compare", "Compare"),
    "theorems": Page("theorems", "Theorems"),
    "control-room": Page("control_room", "Control room"),
    "quadrants": Page("quadrants", "Quadrants"),
    "runs": Page("runs", "Runs"),
    "probes": Page("probes", "Probes"),
    "plan": Page("plan", "Plan"),
}
"""Pages by URL path, the course first."""
HOME = "playground"
"""Page that is shown if the URL names none, as in links to it."""


def address(path: str) -> str:
    """Return the page's path in the URL: empty for HOME, as Streamlit requires."""
    return "" if path == HOME else path


def streamlit_page(path: str) -> Any:
    """Return the page as an object for Streamlit's menu and links; a new one in each run of the script."""
    page = PAGES[path]
    return st.Page(page.draw, title=page.title, url_path=path, default=not address(path))
