"""What others said, in one line, and by which signal they ended."""

import signal


def one_line(said: object, limit: int = 200) -> str:
    """What an error or a name says, in one line of at most `limit` characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in str(said)[: 2 * limit]).split())
    return (words if len(words) <= limit else f"{words[: limit - 1]}…") or type(said).__name__


def signal_name(number: int) -> str:
    """The name of a signal; empty when none has this number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
