"""Rollout engines by name. A new engine is a file and a line here; engines elsewhere are plug-ins, or module:Class."""

from typing import Any

from entrostat.settings.importing import outside

from .rollout_engine import RolloutEngine, Start

ENGINES = {
    "hf": "llmtrain.rollout.hf_engine:HFEngine",
    "vllm": "llmtrain.rollout.vllm.vllm_engine:VLLMEngine",
}
"""Class of each engine, imported on first use."""
GROUP = "llmtrain.rollout_engines"
"""Group of entry points that declare engines: subclasses of RolloutEngine."""


def engine_class(name: str) -> type[RolloutEngine]:
    """Return the class of an engine. Raises ValueError if there is no engine of that name."""
    place = outside("rollout engine", ENGINES.get(name, name), ENGINES, GROUP)
    found: Any = place.load()
    if not (isinstance(found, type) and issubclass(found, RolloutEngine)):
        raise ValueError(f"{place} is no subclass of llmtrain.rollout.rollout_engine.RolloutEngine")
    return found


def start_engine(start: Start) -> RolloutEngine:
    """Return the engine that `start.config` names, in this process. Raises RolloutError if it does not start."""
    return engine_class(start.config.name).start(start)
