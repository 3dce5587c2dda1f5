"""A telephone that opens a published page: a narrow Chromium, in which the page may log no error and ask no host."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

PHONE = {"width": 390, "height": 844}


@contextmanager
def telephone(browser: "Browser", page: Path) -> "Iterator[Page]":
    """Open a page, and yield its tab. Fails at the end if there was an error or a request to a host."""
    context = browser.new_context(viewport=PHONE, has_touch=True)
    tab, errors, asked = context.new_page(), [], []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    yield tab
    assert errors == []
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    context.close()


def is_on_the_screen(part: "Locator") -> bool:
    """Return True if all of a part's height is on the screen as it is scrolled now."""
    box = part.bounding_box()
    return box is not None and box["y"] >= 0 and box["y"] + box["height"] <= PHONE["height"]
