"""Text from files, models and links, for places where Streamlit reads Markdown."""

import re


def plain(text: str) -> str:
    """Text in which Markdown reads nothing but text: names and messages come from files and links."""
    unlinked = re.sub(r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", "\u2060", text)
    return re.sub(r"([\\`*_{}\[\]()#+!|$:<>~&^-])", r"\\\1", unlinked)
