"""One-line texts of errors, and names of signals."""

import signal


def one_line(said: object, limit: int = 200) -> str:
    """Return the text of an error or a name in one line of at most `limit` characters; its type name if empty."""
    words = " ".join("".join(c if c.isprintable() else " " for c in str(said)[: 2 * limit]).split())
    return (words if len(words) <= limit else f"{words[: limit - 1]}…") or type(said).__name__


def signal_name(number: int) -> str:
    """Return the name of a signal; empty if no signal has this number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
