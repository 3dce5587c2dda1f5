"""Training as a job on a running Ray cluster.

    llmtrain launch --address http://127.0.0.1:8265 train --config run.yaml --topology.name ray
    llmtrain launch --address http://127.0.0.1:8265 resume runs/math

The command runs on the cluster and uses its Ray, in the folder `--folder` that all its machines can access. Its output
is printed here. The address is that of the dashboard, which needs ray[default] on the cluster. To require a token, set
RAY_AUTH_MODE=token on both sides, and RAY_AUTH_TOKEN here.
"""

import argparse
import asyncio
import contextlib
import shlex
from typing import Any

from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import Arguments
from entrostat.settings.installation import missing

COMMANDS = ("train", "resume")
STOP = {"RAY_JOB_STOP_SIGNAL": "SIGINT", "RAY_JOB_STOP_WAIT_TIME_S": "1800"}
"""Settings for `ray job stop`: SIGINT, like Ctrl-C, and 30 min for the checkpoint, instead of SIGTERM and 3 s."""


def main(args: list[str]) -> int:
    """Submit a run to a Ray cluster and follow it. The exit code is the run's, or 0 at once with --no-wait."""
    parser = Arguments(prog="llmtrain launch", description=main.__doc__)
    parser.add_argument(
        "--address", required=True, help="address of the cluster's dashboard, such as http://127.0.0.1:8265"
    )
    parser.add_argument("--folder", help="working folder on the cluster; by default the folder of Ray's jobs")
    parser.add_argument("--no-wait", action="store_true", help="return once the job is submitted")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="train or resume, with its arguments")
    given = parser.parse_args(args)
    command = entrypoint(given.command, given.folder)
    client = connect(given.address)
    job = client.submit_job(entrypoint=command, runtime_env={"env_vars": STOP})
    print(f"job {job}; stop it with: ray job stop --address {given.address} {job}", flush=True)
    if given.no_wait:
        return 0
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_follow(client, job))
        return exit_code(client.get_job_info(job))
    print(f"job {job} is still running; follow it with: ray job logs --address {given.address} --follow {job}")
    return 130


def entrypoint(command: list[str], folder: str | None) -> str:
    """Return the job's shell command. Raises ValueError unless `command` is train or resume."""
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise ValueError(f"launch needs a command: {' or '.join(COMMANDS)}")
    if command[0] not in COMMANDS:
        raise ValueError(f"launch: {unknown('command', command[0], COMMANDS)}")
    # Ray sets OMP_NUM_THREADS=1 for a job; unset, the learners share the CPUs of their machine
    line = shlex.join(["env", "-u", "OMP_NUM_THREADS", "python", "-m", "llmtrain", *command])
    line += " --topology.name ray --topology.address auto" if command[0] == "train" else " --topology.address auto"
    return f"cd {shlex.quote(folder)} && {line}" if folder else line


def connect(address: str) -> Any:
    """Return a client of the cluster's job server. Raises ValueError if it does not answer."""
    try:
        from ray.exceptions import AuthenticationError
        from ray.job_submission import JobSubmissionClient
    except ImportError:
        raise ValueError(missing("ray")) from None
    try:
        return JobSubmissionClient(address)
    except (ConnectionError, RuntimeError) as error:
        raise ValueError(f"no Ray dashboard at {address}: {str(error).splitlines()[0]}") from None
    except ValueError:  # not an address
        raise ValueError(f"--address {address} is not a dashboard address such as http://127.0.0.1:8265") from None
    except AuthenticationError:
        raise ValueError(f"{address} requires a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN") from None


async def _follow(client: Any, job: str) -> None:
    """Print the job's output until it ends."""
    async for text in client.tail_job_logs(job):
        print(text, end="", flush=True)


def exit_code(info: Any) -> int:
    """Return the exit code of a finished job's command, or 1 if the command did not run."""
    if info.driver_exit_code is not None:
        return int(info.driver_exit_code)
    return 0 if info.status == "SUCCEEDED" else 1
