import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from entrostat_app.browser.headless import settled

pytestmark = pytest.mark.slow
FURTHER = ("?view=Playground", "theorems?claim=thm1-centred", "quadrants", "control-room")


@pytest.fixture
def asked(tab):
    """Fragments that the browser asks the server to run; "" is the whole page."""
    found = []

    def sent(frame):
        message = BackMsg.FromString(frame)
        if message.HasField("rerun_script"):
            found.append(message.rerun_script.fragment_id)

    tab.on("websocket", lambda socket: socket.on("framesent", sent))
    return found


@pytest.mark.parametrize("page", ["compare", *(pytest.param(x, marks=pytest.mark.long) for x in FURTHER)])
def test_a_slider_reruns_its_fragment(tab, url, asked, page):
    tab.goto(f"{url}/{page}")
    tab.wait_for_selector("[data-testid=stVegaLiteChart] svg")
    settled(tab)
    assert "" in asked
    asked.clear()
    slider = tab.get_by_role("slider").first
    before = slider.get_attribute("aria-valuetext")
    slider.press("ArrowRight")
    settled(tab)
    assert slider.get_attribute("aria-valuetext") != before
    assert asked
    assert all(asked)


def test_controls_stay_in_sight_beside_the_pictures_and_are_below_them_on_a_narrow_page(tab, url):
    tab.set_viewport_size({"width": 1280, "height": 800})
    tab.goto(f"{url}/control-room")
    picture, slider = tab.locator("[data-testid=stVegaLiteChart] svg"), tab.get_by_role("slider", name="Proportional")
    picture.first.wait_for()
    settled(tab)
    drawn = picture.first.bounding_box()
    assert slider.bounding_box()["x"] + slider.bounding_box()["width"] < drawn["x"]
    picture.last.scroll_into_view_if_needed()
    assert picture.first.bounding_box()["y"] < drawn["y"]
    assert 0 < slider.bounding_box()["y"] < 800
    for width in (390, 820):
        tab.set_viewport_size({"width": width, "height": 844})
        settled(tab)
        assert slider.bounding_box()["y"] > picture.last.bounding_box()["y"]
        assert picture.first.bounding_box()["width"] > min(width, 640) / 2
        assert tab.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
