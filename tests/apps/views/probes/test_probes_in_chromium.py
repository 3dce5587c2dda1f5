"""Page Probes in Chromium: the step slider moves both answers and the fate of their branches."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow


def test_the_slider_goes_back_to_where_the_answers_were_one(tab: "Page", url: str) -> None:
    tab.goto(f"{url}/probes?probes.a=probes%2Fa&probes.b=probes%2Fb")
    tab.get_by_text("The answers part at token 2").wait_for()
    answers = [tab.get_by_role("group", name=f"Answer of {side}") for side in "AB"]
    assert [answer.inner_text() for answer in answers] == ["1✂+2<eos>", "1✂-4<eos>"]
    slider = tab.locator(".st-key-probes-step").get_by_role("slider")
    slider.focus()
    slider.press("ArrowLeft")
    tab.get_by_text("The answers part at token 3").wait_for()
    tab.get_by_text("branch A in run B, “2”: died: last taken at step 0.").wait_for()
    slider.press("ArrowLeft")
    tab.get_by_text("The two answers are the same: 4 tokens.").wait_for()
    assert [answer.inner_text() for answer in answers] == ["1+2<eos>", "1+2<eos>"]
    tab.wait_for_url(lambda address: "probes.step=0" in address)
