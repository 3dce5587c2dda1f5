"""Server of `entrostat-app`: its address, allowed hosts, port and error messages."""

import http.client
import socket
import tomllib
from pathlib import Path

import pytest
from streamlit import config

from entrostat_app import launch
from entrostat_app.shared import bandit
from llmtrain.process.local_ranks import free_port

CONFIG = tomllib.loads((Path(launch.__file__).parent / ".streamlit" / "config.toml").read_text())


def test_secure_by_default():
    assert CONFIG["server"]["address"] == "127.0.0.1"
    assert CONFIG["server"]["allowedHosts"] == ["localhost", "127.0.0.1"]
    assert CONFIG["server"]["enableXsrfProtection"] is True
    assert CONFIG["server"]["enableCORS"] is True
    assert CONFIG["browser"]["gatherUsageStats"] is False


def test_streamlit_knows_every_option():
    def names(table, above=""):
        for key, value in table.items():
            yield from names(value, f"{above}{key}.") if isinstance(value, dict) else [above + key]

    known = config.get_config_options()
    assert [name for name in names(CONFIG) if name not in known] == []


def handshake(url: str, host: str, origin: str) -> int:
    """Return the HTTP status of a WebSocket handshake, 101 if accepted; the app sends all content over that socket."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    headers = {
        "Host": host,
        "Origin": origin,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    connection.request("GET", "/_stcore/stream", headers=headers)
    found = connection.getresponse().status
    connection.close()
    return found


def test_only_its_own_names_are_answered(url):
    own = url.removeprefix("http://")
    assert handshake(url, own, url) == 101
    assert handshake(url, "attacker.example", "http://attacker.example") == 403
    assert handshake(url, own, "http://attacker.example") == 403


def test_only_this_machine_is_answered(url):
    port = int(url.rpartition(":")[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            other = probe.getsockname()[0]
        except OSError:
            pytest.skip("this machine has no address but its loopback")
    if other.startswith("127."):
        pytest.skip("this machine has no address but its loopback")
    with pytest.raises(OSError), socket.create_connection((other, port), timeout=2):  # noqa: PT011
        pass


def test_command_names_the_port():
    words = launch.command(launch.Flags(port=8600, browser=False))
    assert words[words.index("--server.port") + 1] == "8600"
    assert words[words.index("--server.headless") + 1] == "true"


def test_streamlit_sends_nothing_and_offers_nothing():
    """Its welcome, which is hidden, comes with offers on every page; the address is said by us."""
    words = launch.command(launch.Flags())
    assert words[words.index("--browser.gatherUsageStats") + 1] == "false"
    assert words[words.index("--logger.hideWelcomeMessage") + 1] == "true"


def test_the_address_is_said(monkeypatch, capsys):
    port = free_port()
    monkeypatch.setattr(launch.os, "execv", lambda *_: None)
    launch.main(["--port", str(port)])
    assert capsys.readouterr().out == f"the explorer: http://127.0.0.1:{port} (Ctrl-C stops it)\n"
    assert launch.address(launch.Flags(host="0.0.0.0")) == f"http://{socket.gethostname()}:8501"


def test_the_address_is_loopback_whatever_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", "0.0.0.0")
    monkeypatch.setenv("STREAMLIT_SERVER_ENABLE_CORS", "false")
    monkeypatch.delenv(launch.RUNS, raising=False)
    started = []
    monkeypatch.setattr(launch.os, "execv", lambda _, words: started.append(words))
    launch.main(["--port", str(free_port())])
    (words,) = started
    assert words[words.index("--server.address") + 1] == "127.0.0.1"
    assert [words[i + 1] for i, word in enumerate(words) if word == "--server.allowedHosts"] == [
        "localhost",
        "127.0.0.1",
    ]
    assert not [name for name in launch.os.environ if name.startswith("STREAMLIT_SERVER_")]


def test_another_address_is_only_taken_from_the_flag():
    words = launch.command(launch.Flags(host="0.0.0.0"))
    assert words[words.index("--server.address") + 1] == "0.0.0.0"
    assert socket.gethostname() in words


def test_a_port_that_is_none(capsys):
    assert launch.main(["--port", "99999"]) == 2
    assert "--port must lie in [1, 65535]" in capsys.readouterr().err


def test_a_folder_or_a_port_that_cannot_be_used_takes_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(launch.os, "execv", lambda *_: pytest.fail("the server was started"))
    (tmp_path / "file").touch()
    assert launch.main(["--runs", str(tmp_path / "file")]) == 2
    assert f"--runs {tmp_path / 'file'} is a file" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert launch.main(["--port", str(port)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: port {port} is not available (")


def test_an_environment_that_cannot_be_read_takes_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(launch.os, "execv", lambda *_: pytest.fail("the server was started"))
    (tmp_path / "own.yaml").write_text("states: many\n")
    for file, message in (("own.yaml", "own.yaml: "), ("none.yaml", "No such file"), ("own.json", "name a .yaml file")):
        assert launch.main(["--environments", str(tmp_path / file)]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1


def test_environments_reach_the_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (launch.RUNS, launch.ENVIRONMENTS):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(launch.os, "execv", lambda *_: None)
    Path("own.yaml").write_text("states: 3\n")
    Path("more.yaml").write_text("states: 4\n")
    launch.main(["--environments", "own.yaml", "more.yaml", "--port", str(free_port())])
    assert bandit.files() == ("own.yaml", "more.yaml")


def test_a_port_is_free_again_when_the_server_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(launch.RUNS, raising=False)
    with socket.create_server(("127.0.0.1", free_port())) as other:
        port = other.getsockname()[1]
    started = []
    monkeypatch.setattr(launch.os, "execv", lambda *_: started.append(socket.create_server(("127.0.0.1", port))))
    launch.main(["--port", str(port)])
    started[0].close()


@pytest.mark.parametrize("args", [[], ["--help"]])
def test_help_teaches(args, capsys):
    with pytest.raises(SystemExit) as stop:
        launch.main(args)
    assert stop.value.code == 0
    assert "entrostat-app --runs runs" in capsys.readouterr().out
