"""llmtrain resume: continue a run with its own settings."""

from dataclasses import replace
from pathlib import Path

from entrostat.settings.commandline import Arguments

from ..cluster.start_run import start_run
from ..training.run import run_config, tell_own_names


def main(args: list[str]) -> int:
    """Continue a run from its newest checkpoint."""
    parser = Arguments(prog="llmtrain resume", description=main.__doc__)
    parser.add_argument("run", help="folder of the run, such as runs/countdown")
    parser.add_argument("--steps", type=int, help="train to this rollout step instead of the configured one")
    parser.add_argument("--nproc", type=int, help="number of ranks instead of the configured one (DeepSpeed)")
    parser.add_argument("--topology.address", dest="address", help="Ray cluster to continue on, HOST:PORT or auto")
    parser.add_argument("--trust-remote-code", action="store_true", help="run Python code in the model folders")
    given = parser.parse_args(args)
    from ..policy.checkpoint import latest, step_of
    from ..training.check import check_machine

    config = replace(run_config(given.run, given.trust_remote_code), out=str(Path(given.run)))
    tell_own_names(config)
    if given.address is not None:
        if config.topology.name != "ray":
            raise ValueError(f"{given.run} was not trained on Ray but with topology.name {config.topology.name}")
        config = replace(config, topology=replace(config.topology, address=given.address))
    if given.steps is not None:
        done = step_of(latest(given.run))
        if given.steps < done:
            raise ValueError(f"--steps {given.steps}: {given.run} has done {done}; give {done} or more")
        config = replace(config, steps=given.steps)
    if given.nproc is not None:
        config = replace(config, nproc=given.nproc)
    check_machine(config)
    return start_run(["resume", *args], config, resuming=True)
