"""The command of several machines on docs/scale.md, as two launchers on this one."""

import os
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest
from same_runs import without_times
from tests.docs.pages import CALLS

from entrostat.settings.plain_yaml import dump_yaml
from llmtrain.process.local_ranks import free_port
from llmtrain.settings.nested import to_dict
from llmtrain.training.trainer import Trainer


@pytest.mark.slow
def test_two_machines_train_as_one_process(small, tmp_path):
    """A rank on each, on CPUs: every metric, and one log and one line at the end."""
    pytest.importorskip("deepspeed")
    config = replace(small, steps=2, controller="entropy_bonus", threads=1, eval=replace(small.eval, every=0))
    Trainer(replace(config, out=str(tmp_path / "one")), config.model.path).run()
    (tmp_path / "run.yaml").write_text(dump_yaml(to_dict(replace(config, out=str(tmp_path / "two")))))

    (line,) = {line for _, line in CALLS if line.startswith("torchrun")}
    for there, here in (("HOST:29500", f"127.0.0.1:{free_port()}"), ("-node 8", "-node 1"), (" cuda", " cpu")):
        assert there in line
        line = line.replace(there, here)
    command = [sys.executable, "-m", "torch.distributed.run", *shlex.split(line)[1:]]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    machines = [subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) for _ in range(2)]
    try:
        said = [machine.communicate(timeout=180) for machine in machines]
    finally:
        for machine in machines:
            machine.kill()
    assert [machine.returncode for machine in machines] == [0, 0], said
    assert sum(out.count(f"done: {tmp_path / 'two'}") for out, _ in said) == 1
    one, two = (without_times(tmp_path / name) for name in ("one", "two"))
    assert len(one) == len(two) == 2
    for a, b in zip(one, two, strict=True):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert b[key] == pytest.approx(value, rel=1e-4, abs=1e-5), key
