"""A rank that fails ends all ranks, and one line says why."""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import faulty_rank
import pytest
from tests.ranks import group, run_ranks, start

from entrostat.settings.plain_yaml import dump_yaml
from llmtrain.policy.checkpoint import checkpoints
from llmtrain.process.family import family, left_of
from llmtrain.process.local_ranks import free_port
from llmtrain.settings.config import EngineConfig
from llmtrain.settings.nested import to_dict
from llmtrain.training import trainer as trainer_module


def faulty(config, folder: Path, who: int | str, what: str, size: int, **engine: Any) -> list[str]:
    """Script, with its arguments, of each rank of a run in which rank `who` fails at its second step."""
    deepspeed = EngineConfig(name="deepspeed", **engine)
    config = replace(config, nproc=size, out=str(folder / "run"), engine=deepspeed, threads=1)
    optim = replace(config.optim, mini_batch_size=2 * size)
    rollout = replace(config.rollout, prompts=4 * size)
    (folder / "c.yaml").write_text(dump_yaml(to_dict(replace(config, optim=optim, rollout=rollout))))
    return [str(Path(__file__).parents[1] / "faulty_rank.py"), str(folder / "c.yaml"), str(who), what]


def ranks_with_a_fault(
    config, folder: Path, who: int | str, what: str, size: int = 2, **engine: Any
) -> tuple[list[int], list[str]]:
    """Exit codes and errors of its ranks, started without our launcher."""
    _, *args = faulty(config, folder, who, what, size, **engine)
    files = [folder / f"rank-{rank}.log" for rank in range(size)]
    ranks = [
        start(variables, file, faulty_rank.main, *args) for variables, file in zip(group(size), files, strict=True)
    ]
    for process in ranks:
        process.join(5 if what in ("stopped", "busy") and process is ranks[who] else 120)
        process.kill()
        process.join()
    return [process.exitcode for process in ranks], [file.read_text() for file in files]


def said_in_time(process: subprocess.Popen, seconds: float) -> str:
    """Errors of a rank, which is killed if it does not end in time."""
    try:
        return process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return f"NOT DONE after {seconds:g} s: {process.communicate()[1]}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "what", "words"),
    [
        (1, "memory", "error: step 1: out of memory in phase 'other'"),
        pytest.param(1, "rollout", "error: step 1: rollout engine vllm ", marks=pytest.mark.long),
        pytest.param(1, "backend", "error: another rank stopped: NCCL error: ", marks=pytest.mark.long),
        pytest.param(0, "bug", "KeyError: 'a bug'", marks=pytest.mark.long),
    ],
)
def test_one_rank_that_fails_ends_all_and_says_why(small, tmp_path, who, what, words):
    """The other one waits for it in a collective; it ends as well, and adds nothing."""
    codes, said = ranks_with_a_fault(small, tmp_path, who, what)
    assert codes == [1, 1], said
    assert words in said[who]
    assert "Error" not in said[1 - who]
    assert "error" not in said[1 - who]


@pytest.mark.long
def test_what_all_ranks_refuse_is_said_once(small, tmp_path):
    codes, said = ranks_with_a_fault(small, tmp_path, "all", "refused")
    assert sorted(codes) == [1, 2]
    assert [line for text in said for line in text.splitlines() if "error" in line] == ["error: this cannot be"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "size", "said"),
    [
        ("stopped", 2, "rank 1 does not answer"),
        pytest.param("busy", 4, r"rank 1 is in fails \(faulty_rank.py, line \d+\)", marks=pytest.mark.long),
    ],
)
def test_a_rank_that_hangs_is_named(small, tmp_path, what, size, said):
    """Once, by a rank that waited for it; all that can end do so."""
    codes, told = ranks_with_a_fault(small, tmp_path, 1, what, size, ddp_timeout=12.0)
    assert [code for rank, code in enumerate(codes) if rank != 1] == [1] * (size - 1), told
    (line,) = (line for text in told for line in text.splitlines() if line.startswith("error: "))
    assert re.match(rf"error: .*engine\.ddp_timeout 12 s .*{said}; last checkpoint: ", line), line


@pytest.mark.slow
def test_a_rank_that_is_killed_is_noticed_once(small, tmp_path):
    codes, said = ranks_with_a_fault(small, tmp_path, 2, "killed", size=3)
    assert codes == [1, 1, -9]
    (line,) = (line for text in said for line in text.splitlines() if line.startswith("error: "))
    assert line.startswith("error: another rank stopped: ")
    assert "last checkpoint: " in line


@pytest.mark.long
def test_under_torchrun_its_report_names_the_rank_that_was_killed(small, tmp_path):
    """The survivors, of which none knows it, are stopped."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", "--master-port"]
    command = [*torchrun, str(free_port()), *faulty(small, tmp_path, 2, "killed", size=3)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said, known = said_and_family(process, 120)
    assert process.returncode == 1, said
    assert re.search(r"rank +: 2 \(local_rank: 2\)\n +exitcode +: -9 ", said), said
    assert len(known) >= 3
    assert not left_of(known)


def said_and_family(process: subprocess.Popen, seconds: float) -> tuple[str, dict[int, str]]:
    """Errors of a process, and all processes that were seen below it."""
    known: dict[int, str] = {}
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(said_in_time, process, seconds)
        while not said.done():
            known |= family(process.pid)
            time.sleep(0.1)
    return said.result(), known


def sees_less(config):
    """As rank 1, find the checkpoint before the newest one, as on a file system that is slow to show new files."""
    if os.environ["RANK"] == "1":
        trainer_module.latest = lambda run: checkpoints(run)[-2]
    with pytest.raises(ValueError, match="step-000002 for rank 0 and step-000001 for rank 1"):
        trainer_module.Trainer(config, config.out, resume=True)


@pytest.mark.slow
def test_ranks_that_see_different_checkpoints_do_not_go_on(small, tmp_path):
    never, deepspeed = replace(small.eval, every=0), EngineConfig(name="deepspeed")
    config = replace(small, out=str(tmp_path / "run"), steps=2, eval=never, engine=deepspeed, threads=1)
    run_ranks(group(1), finish, config)
    run_ranks(group(2), sees_less, replace(config, steps=4))


def finish(config):
    trainer_module.Trainer(config, config.model.path).run()
