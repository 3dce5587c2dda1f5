"""docs/app.md shows every page."""

import re
from pathlib import Path

from entrostat_app.menu import PAGES
from entrostat_app.views.learn.learn import MINUTES
from entrostat_app.views.learn.lessons import LESSONS

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_has_a_section_and_a_picture():
    text = (DOCS / "app.md").read_text()
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert {f"app/{path}.png" for path in PAGES} <= set(pictures)
    for view in PAGES.values():
        assert f"### {view.title}\n" in text
    for picture in pictures:
        assert (DOCS / picture).read_bytes().startswith(b"\x89PNG"), picture


def test_the_teachers_table_has_the_lessons():
    text = (DOCS / "app.md").read_text()
    rows = [f"| {number}. {lesson.title} | {lesson.minutes} |" for number, lesson in enumerate(LESSONS, 1)]
    assert "\n".join(rows) in text
    assert f"**For teachers: {MINUTES} minutes.**" in text
