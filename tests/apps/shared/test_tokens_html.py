"""Responses as HTML: text never becomes markup, and invisible characters are made visible."""

import html.parser

import pytest

from entrostat_app.shared import tokens_html
from entrostat_app.shared.plain_text import plain

EVIL = "<script>alert(1)</script>\" onmouseover='x' &lt;"


class Reader(html.parser.HTMLParser):
    """Parser that collects the tags, attributes and text that a browser would find."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.text += data


def sample(**fields):
    return {"tokens": ["a", EVIL, " b"], "response": f"a{EVIL} b", "entropy": [0.0, 2.0, 1.0], **fields}


@pytest.mark.parametrize("name", tokens_html.SCALES)
def test_text_stays_text(name):
    given = sample(weight=[0.0, 1.0, 2.0], entropy_change=[-1.0, 0.0, None], logp=[-1.0, -2.0, -3.0])
    for text in (tokens_html.response(given, name), tokens_html.legend(given, name)):
        found = Reader(text)
        assert set(found.tags) <= {"div", "span", "strong"}
        assert set(found.attributes) <= {"style", "title", "tabindex", "role", "aria-label"}
    assert tokens_html.visible(EVIL) in Reader(tokens_html.response(given, name)).text
    without = Reader(tokens_html.response({"response": EVIL, "tokens": EVIL}, name))
    assert without.tags == ["div"]
    assert without.text == tokens_html.visible(EVIL)


def test_invisible_characters_are_drawn():
    assert tokens_html.visible("a b\n\tc\u202e\x00\u200b\ud800é") == "a·b↵\n⇥\tc\\u202e\\x00\\u200b\\ud800é"
    assert "∅" in tokens_html.token("", 0.0, "")


def test_numbers_stand_in_the_title():
    text = tokens_html.response(sample(logp=[-1.0, -0.51234567, -3.0], weight=[1, 2]), "entropy")
    assert 'title="log p -0.5123 · H 2"' in text
    assert "weight" not in text


def test_shade_and_underline_grow_with_the_distance():
    scale = tokens_html.SCALES["weight"]
    assert tokens_html.strengths([1.0, 2.0, 0.0, 1.5, float("nan")], scale) == [0, 1, -1, 0.5, 0]
    assert tokens_html.strengths([1.0, 1.0], scale) == [0, 0]
    assert tokens_html.strengths([1.0, 0.975], scale) == pytest.approx([0, -0.1])
    assert tokens_html.strengths([], scale) == []
    strong, weak, down, none = (tokens_html.token("x", s, "") for s in (1.0, 0.5, -1.0, 0.0))
    assert "4px solid" in strong
    assert "2px solid" in weak
    assert "4px dotted" in down
    assert "px solid" not in none
    assert "px dotted" not in none


def test_dropped_tokens_are_struck_through():
    given = sample(weight=[0.0, 1.0, 0.5])
    assert tokens_html.response(given, "weight").count("line-through") == 1
    assert "line-through" not in tokens_html.response(given, "entropy")


def test_the_legend_tells_what_is_there():
    legend = tokens_html.legend(sample(entropy_change=[0.25, -0.5, None]), "ΔH")
    text = Reader(legend).text
    assert "raises the entropy" in text
    assert "-0.5 nats per unit step: lowers it" in text
    assert "lowers" not in tokens_html.legend(sample(entropy_change=[0.25, 0.5, 0]), "ΔH")


def test_what_is_worth_noticing():
    numbers = {"entropy": [0.0, 3.0, 1.0], "weight": [0.0, 1.0, 0.5], "entropy_change": [-0.5, 0.25, None]}
    given = {"tokens": ["a", "<b>", "c"], **numbers}
    assert "token 2, “<b>”, with 3.00 nats; the mean is 1.33. The 1 most" in tokens_html.notice(given, "entropy")
    assert "hold 75% of the entropy" in tokens_html.notice(given, "entropy")
    assert "weight of 2 of 3 tokens and dropped 1" in tokens_html.notice(given, "weight")
    assert "by 0.25 together, 1 lower it by 0.5: -0.25 nats" in tokens_html.notice(given, "ΔH")
    assert tokens_html.notice({"response": "a"}, "entropy") == ""


@pytest.mark.parametrize("values", [None, [1.0], ["1", "2", "3"], [True, False, True], {"a": 1}, "abc"])
def test_columns_that_do_not_fit_are_ignored(values):
    given = sample(weight=values)
    assert tokens_html.column(given, "weight") is None
    assert Reader(tokens_html.response(given, "weight")).tags == ["div"]


def test_endless_responses_are_cut(monkeypatch):
    monkeypatch.setattr(tokens_html, "MOST", 2)
    assert tokens_html.response(sample(), "entropy").count("<span") == 2


def test_markdown_reads_nothing_into_plain_text():
    text = plain("![x](http://e.vil/a.png) **b** www.e.vil :red[c] $x$ <b> a@b.c")
    assert "\\!\\[x\\]\\(" in text
    assert "://" not in text
    assert "www." not in text
    assert "\\*\\*b" in text
    assert "\\<b\\>" in text
