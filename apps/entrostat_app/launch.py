"""`entrostat-app`: open the explorer. By default it serves this machine only; it reads one folder."""

import contextlib
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from entrostat import __version__
from entrostat.settings.commandline import one_line_errors, parse_flags
from entrostat.settings.installation import missing

MAIN = Path(__file__).parent / "server.py"
RUNS = "ENTROSTAT_RUNS"
"""Environment variable with the folder of run logs."""
ENVIRONMENTS = "ENTROSTAT_ENVIRONMENTS"
"""Environment variable with the files of environments, joined by os.pathsep."""
SERVER = "STREAMLIT_SERVER_"
"""Start of the environment variables that change Streamlit's server, which are ignored."""
LOOPBACK = "127.0.0.1"
DESCRIPTION = """Explore entropy control in a browser: a live bandit, the theorems, and the logs of your runs.

Example: entrostat-app --runs runs --port 8501
         entrostat-app --environments own.yaml

The server listens on this machine only (127.0.0.1), whatever STREAMLIT_SERVER_* says, unless --host says otherwise.
To use it from another machine, forward the port: ssh -L 8501:localhost:8501 HOST

entrostat --help names the other programs."""


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Flags of `entrostat-app`."""

    runs: Path = Path("runs")
    """Folder of the run logs on the pages Runs, Probes and Plan; nothing outside it is read."""
    environments: tuple[str, ...] = ()
    """YAML files of environments (docs/simulator.md), offered in the menus of environments."""
    port: Annotated[int, "[1, 65535]"] = 8501
    """Port of the server."""
    host: str = LOOPBACK
    """Address to listen on. Any other than 127.0.0.1 lets other machines read the run logs, without a password."""
    browser: bool = True
    """Open the browser."""


def command(flags: Flags) -> list[str]:
    """Return the server's command line: flags go before environment variables and .streamlit/config.toml."""
    options = [
        ("server.port", str(flags.port)),
        ("server.headless", str(not flags.browser).lower()),
        ("server.address", flags.host),
        *(("server.allowedHosts", name) for name in _names(flags.host)),
        ("browser.gatherUsageStats", "false"),  # Streamlit speaks of it before it reads .streamlit/config.toml
        ("logger.hideWelcomeMessage", "true"),  # and with it offers of its own on every page
    ]
    return [
        sys.executable, "-m", "streamlit", "run", str(MAIN),
        *(word for key, value in options for word in (f"--{key}", value)),
    ]  # fmt: skip


def address(flags: Flags) -> str:
    """Return the URL of the explorer, by this machine's name where it listens on all addresses."""
    return f"http://{socket.gethostname() if flags.host == '0.0.0.0' else flags.host}:{flags.port}"


def _names(host: str) -> list[str]:
    """Return the names and addresses under which the server answers when it listens on `host`."""
    names = ["localhost", LOOPBACK]
    if host != LOOPBACK:
        own = socket.gethostname()
        with contextlib.suppress(OSError):
            names += [str(found[4][0]) for found in socket.getaddrinfo(own, None)]
        names += [host, own, socket.getfqdn()]
    return list(dict.fromkeys(names))


@one_line_errors
def main(args: Sequence[str]) -> int:
    """Start the explorer, and return when it is stopped; without arguments, print the help."""
    if list(args) == ["--version"]:
        print(f"entrostat-app {__version__}")
        return 0
    flags = parse_flags(Flags, args or ["--help"], prog="entrostat-app", description=DESCRIPTION)
    if find_spec("streamlit") is None:
        raise ValueError(missing("streamlit"))
    if flags.runs.is_file():
        raise ValueError(f"--runs {flags.runs} is a file: name the folder of the run logs")
    for file in flags.environments:
        _check_environment(file)
    _check_port(flags.host, flags.port)
    for name in [name for name in os.environ if name.startswith(SERVER)]:
        del os.environ[name]
    os.environ[RUNS] = str(flags.runs.resolve())
    os.environ[ENVIRONMENTS] = os.pathsep.join(flags.environments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    words = command(flags)
    print(f"the explorer: {address(flags)} (Ctrl-C stops it)", flush=True)
    os.execv(words[0], words)


def _check_environment(file: str) -> None:
    if not file.endswith((".yaml", ".yml")):
        raise ValueError(f"--environments {file}: name a .yaml file")
    from toybandit.environment_file import read_environment

    read_environment(file)


def _check_port(host: str, port: int) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: a port just freed is free
        try:
            server.bind((host, port))
        except socket.gaierror:
            raise ValueError(f"--host {host} is not an address of this machine") from None
        except OSError as problem:
            raise ValueError(f"port {port} is not available ({problem.strerror}): choose another --port") from None


if __name__ == "__main__":
    sys.exit(main())
