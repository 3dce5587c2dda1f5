"""The explorer's server: Streamlit's, with pages that name its address.

Streamlit's own page looks for the server below the URL of each page first, which puts two errors into the console.
"""

from pathlib import Path

import streamlit
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from streamlit.starlette import App

from entrostat_app.menu import PAGES, SCRIPT, address

ADDRESS = "<script>window.__streamlit = {BACKEND_BASE_URL: location.origin}</script>"
PAGE = (Path(streamlit.__file__).parent / "static" / "index.html").read_text().replace("<head>", f"<head>{ADDRESS}", 1)


def page(request: Request) -> HTMLResponse:
    """Return the page that loads Streamlit."""
    return HTMLResponse(PAGE, headers={"cache-control": "no-cache"})


app = App(SCRIPT, routes=[Route(f"/{address(path)}", page) for path in PAGES])
