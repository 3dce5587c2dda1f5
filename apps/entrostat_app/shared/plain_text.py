"""Escape text from files, models and links wherever Streamlit reads Markdown."""

import re


def plain(text: str) -> str:
    """Return the text with Markdown and automatic links disabled: names and messages come from files and links."""
    unlinked = re.sub(r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", "\u2060", text)
    return re.sub(r"([\\`*_{}\[\]()#+!|$:<>~&^-])", r"\\\1", unlinked)
