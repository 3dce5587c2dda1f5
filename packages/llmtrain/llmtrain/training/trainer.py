"""Training run: its parts, their state in a checkpoint, and the loop over rollout steps (`step.py`).

Randomness is keyed by (seed, step, purpose), so the step is all the state needed to repeat it.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from entrostat.diagnostics import EntropyTrace
from entrostat.logs.runlog import RunLog
from entrostat.settings.commandline import OF_THE_DISK

from ..data.prompts import use_template, within
from ..evaluation.evaluator import Evaluator
from ..evaluation.paper_settings import in_training
from ..policy.bases import find_bases
from ..policy.checkpoint import last_saved, latest, load_state, save_checkpoint, unwritable
from ..policy.engine import NonFiniteError
from ..policy.engines import make_engine
from ..policy.lora import adapter_state, attach, load_adapter_state, updates
from ..policy.model import load
from ..policy.policy import Policy
from ..policy.retention import to_keep
from ..process.clock import Clock
from ..process.cores import cpus, threads_that_help
from ..process.gpu_memory import empty_cache
from ..process.heap import give_back
from ..process.stop_signals import StopSignal, restore
from ..rollout.hf import stop_ids
from ..rollout.make import make_rollout_engine
from ..rollout.rollout_engine import RolloutEngine, RolloutError, Start
from ..settings.config import TrainConfig
from ..tasks import Task, get_task
from .annotator import Annotator
from .check import prompt_limit
from .collect import Collector
from .guard import Guard, RollBackError, TrainingStoppedError
from .held_out import HeldOut
from .learner import Learner
from .partial_batches import make_batches
from .probes import Prober
from .rules import keeps_groups, make_controller
from .sending import Sending
from .step import Step
from .telemetry import NoLog, WatchedRunLog, traced
from .weights_proof import WeightsProof, mismatch_limit

Report = Callable[[int, dict[str, float]], None]
LOWER = {
    "rollout": "lower rollout.prompts, rollout.max_new_tokens or rollout.gpu_memory_utilization",
    "eval": "lower eval.samples or eval.max_new_tokens",
    "sync": "lower rollout.gpu_memory_utilization",
    "forward": "lower optim.micro_batch_tokens, or turn engine.gradient_checkpointing on",
    "optimizer": "raise engine.zero_stage, or turn engine.offload_optimizer on",
}
"""Settings that reduce memory use, by phase."""


class Trainer:
    """Training run; `resume` continues from the newest checkpoint in `config.out`."""

    def __init__(
        self, config: TrainConfig, model_path: str | Path, resume: bool = False, roll_backs: int | None = None
    ) -> None:
        """roll_backs: how often the run was rolled back; None takes the number in the checkpoint."""
        self._threads = torch.get_num_threads()
        torch.set_num_threads(config.threads or min(self._threads, cpus()))
        self.config = config
        self.controller = make_controller(config)
        source = latest(config.out) if resume else Path(model_path)
        state = load_state(source) if resume else None
        self.bases = find_bases(config, self.controller.needs, source, state)
        base = Path(self.bases["base"]["folder"]) if config.model.lora_rank else source
        self.model, self.tokenizer = self._load_model(base, state)
        if config.device == "cpu" and not config.threads:
            torch.set_num_threads(min(torch.get_num_threads(), self._threads_that_help()))
        self.task = self._fitting(get_task(config))
        self.policy = Policy(self.model, config.rollout.sampling.temperature, layout=config.optim.layout)
        known = state["roll_backs"] if state and "roll_backs" in state else 0
        self.roll_backs = known if roll_backs is None else roll_backs
        lowered = replace(config.optim, lr=config.optim.lr * config.guard.lr_factor**self.roll_backs)
        self.engine = make_engine(config, self.policy, lowered, config.total_updates)
        self.ranks = self.engine.ranks
        self.clock = Clock(config.device)
        limits = replace(config.guard, mismatch_above=mismatch_limit(config))
        self.guard = Guard(limits, prints=self.ranks.rank == 0)
        self.learner = Learner(
            self.policy,
            self.engine,
            self.controller,
            config.optim,
            seed=config.seed,
            clock=self.clock,
            updates=config.updates,
            guard=self.guard,
        )
        self.annotator = Annotator(
            config,
            self.policy,
            self.ranks,
            self.clock,
            self.controller,
            reference=Path(self.bases["reference"]["folder"]) if "reference" in self.bases else None,
            checkpoint=source if resume else None,
        )
        self.trace = EntropyTrace()
        self.step = 0
        if state:
            self._check_same(source)
            self._restore(state, source)
        self._saved_step = self.step if state else None
        self.rollout = self._start_rollout(base if config.adapter_rank else source)
        batches = make_batches(config, self.task, self.tokenizer, self.rollout, self.ranks, self.clock)
        self.proof = WeightsProof(batches, self.policy, self.rollout, self.ranks)
        self.sending = Sending(config, self.model, self.engine, self.rollout, self.proof, self.clock)
        self.collector = Collector(batches, whole_groups=keeps_groups(config))
        self.evaluator = self._evaluator()
        self.prober = Prober(config, self.task, self.collector, self.annotator, self.controller)
        self.held_out = HeldOut(config, self.evaluator, self.prober, self.rollout, self.clock)
        torch.manual_seed(config.seed)
        if state:
            self.collector.batches.resume(state["batches"], state.get("in_flight", []))
            if self.collector.batches.curriculum and "curriculum" in state:
                self.collector.batches.curriculum.load_state_dict(state["curriculum"])
            self.collector.advantages.load_state_dict(state.get("advantages", {}))
            self.evaluator.start = state["prompt_entropy"]
            torch.set_rng_state(state["rng"])
        self.log: RunLog | NoLog = NoLog()
        if self.ranks.rank == 0:
            self.log = WatchedRunLog(config, resume_at=self.step if resume else None)
        self._stop = StopSignal()
        self.stopped_by = 0
        """Number of the signal that stopped the run; 0 if none did."""

    def _load_model(self, base: Path, state: dict[str, Any] | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Return model and tokenizer from the folder `base`, with LoRA updates if configured."""
        config = self.config
        alone = config.engine.name == "torch"
        dtype = torch.bfloat16 if config.engine.bf16 and not alone else torch.float32
        trusted = config.model.trust_remote_code
        model, tokenizer = load(base, dtype=dtype, device=config.device, trust_remote_code=trusted)
        if config.model.lora_rank:
            attach(model, config.model, config.seed)
        if state:
            load_adapter_state(model, state["lora"])
        use_template(tokenizer, config.data)
        model.train()
        if alone:  # DeepSpeed casts and partitions it first
            torch.nn.Module.to(model, torch.device(config.device))
        return model, tokenizer

    def _threads_that_help(self) -> int:
        layers = getattr(self.model.config.get_text_config(), "num_hidden_layers", None) or 1
        rollout = self.config.rollout
        table: Any = self.model.get_input_embeddings()
        inside = sum(weight.numel() for weight in self.model.parameters()) - table.weight.numel()
        return threads_that_help(inside // layers, rollout.prompts * max(rollout.group_sizes) // self.config.nproc)

    def _start_rollout(self, folder: Path) -> RolloutEngine:
        """Start the rollout engine with the model in a folder, after all permanent GPU memory is allocated.

        vLLM takes memory that is free when it starts, and counts memory that others allocate meanwhile as its own.
        """
        config = self.config
        later = config.topology.restarts or config.topology.elastic_engines
        self.kept = folder if later else None  # engines that start later load it
        empty_cache()
        self.ranks.barrier()
        start = Start(
            folder=folder,
            config=config.rollout,
            stop_token_ids=stop_ids(self.model, self.tokenizer, config.rollout.stop_token_ids),
            device=config.device,
            rank=self.ranks.rank,
            model=self.model,
            tokenizer=self.tokenizer,
            whole=self.engine.whole,
            sleep_level=config.sleep_level,
            lora_rank=config.adapter_rank,
            trust_remote_code=config.model.trust_remote_code,
        )
        return make_rollout_engine(config, start, self.ranks)

    def _fitting(self, task: Task) -> Task:
        """Return the task without file questions whose prompts are too long; start its verifier and try it."""
        if self.config.data.train_files:
            limit = prompt_limit(self.config)
            fits = partial(within, self.tokenizer, limit=limit)
            task = task.keep(fits, f"their prompts have more than data.max_prompt_length {limit} tokens")
        task.try_out(max(self.config.rollout.group_sizes))
        return task

    def _evaluator(self) -> Evaluator:
        config = self.config
        return Evaluator(
            policy=self.policy,
            questions=self.task.test,
            verify=self.task.verify,
            failures=lambda: self.task.verifier.failures,
            sampling=in_training(config),
            k=0 if config.eval.settings else config.eval.k,
            micro_batch_tokens=config.optim.micro_batch_tokens,
            ranks=self.ranks,
        )

    # State --------------------------------------------------------------------------------------------------------

    def _check_same(self, checkpoint: Path) -> None:
        """Raise ValueError unless all ranks go on from the same checkpoint: a file system may show one late."""
        seen = self.ranks.gather([checkpoint.name])
        if other := next((rank for rank, name in enumerate(seen) if name != seen[0]), None):
            raise ValueError(
                f"the newest checkpoint of {self.config.out} is {seen[0]} for rank 0 and {seen[other]} for rank {other}"
                ": resume again once their file systems show the same files"
            )

    def _restore(self, state: dict[str, Any], checkpoint: Path) -> None:
        self.step = state["step"]
        self.engine.load_state_dict(state["engine"])
        self.engine.load_shards(checkpoint)
        self.controller.load_state_dict(state["controller"])
        self.annotator.load_state_dict(state["annotator"], checkpoint)
        self.learner.planned = state["planned"]
        self.trace.load_state_dict(state["trace"])

    def save(self) -> Path:
        """Write a checkpoint of the state after the last complete step."""
        with self.engine.whole(updates(self.model).values()):
            lora = adapter_state(self.model)
        state = {
            "engine": self.engine.state_dict(),
            "controller": self.controller.state_dict(),
            "planned": self.learner.planned,
            "batches": self.collector.batches.used,
            "in_flight": self.collector.batches.in_flight(),
            "lora": lora,
            "bases": self.bases,
            "annotator": self.annotator.state_dict(),
            "advantages": self.collector.advantages.state_dict(),
            "trace": self.trace.state_dict(),
            "prompt_entropy": self.evaluator.start,
            "rng": torch.get_rng_state(),
            "roll_backs": self.roll_backs,
        }
        if self.collector.batches.curriculum:
            state["curriculum"] = self.collector.batches.curriculum.state_dict()
        models = {"": (self.policy, self.engine)} | self.annotator.learning
        kept = self.annotator.kept
        path = save_checkpoint(self.config.out, self.step, models, self.tokenizer, state, self._to_keep, kept)
        self._saved_step = self.step
        return path

    def _to_keep(self) -> set[Path]:
        """Return the checkpoints that stay, with the one that restarted engines load."""
        return to_keep(self.config.out, self.config.checkpoint) | ({self.kept} if self.kept else set())

    # The loop -----------------------------------------------------------------------------------------------------

    def run(self, report: Report = lambda step, metrics: None) -> None:
        """Train to the last step or to the first signal that stops (see `StopSignal`), and write a checkpoint.

        report: called after every step with its metrics.
        Raises TrainingStoppedError if a loss is not finite, memory or disk run out or the rollout engine fails; the
        last checkpoint stays. Raises RollBackError if a guard asks for that.
        """
        previous = self._stop.heed(local=self.config.topology.name == "local")
        try:
            if self._saved_step is None and self.config.guard.does("roll_back"):
                self.save()
            while self.step < self.config.steps and not self._is_stopped():
                with traced(self.config, self.step, self.ranks.rank):
                    metrics = self._train_step()
                self.log.log(self.step, metrics)
                report(self.step, metrics)
                self.step += 1
                stops_for = self.guard.stops_for
                if self.step % self.config.save_every == 0 or stops_for:
                    self.save()
                if stops_for:
                    raise TrainingStoppedError(f"step {self.step - 1}: {stops_for}; {last_saved(self.config.out)}")
            if self._saved_step != self.step:
                self.save()
            if not self.interrupted:
                self._look_at_the_end()
        except Exception as error:
            if isinstance(error, NonFiniteError) and self.config.guard.non_finite == "roll_back":
                raise RollBackError(f"step {self.step}: {error}") from None
            if isinstance(error, RollBackError):
                raise RollBackError(f"step {self.step}: {error}") from None
            said = self._reason(error)
            if not said:
                raise
            raise TrainingStoppedError(f"step {self.step}: {said}; {last_saved(self.config.out)}") from None
        finally:
            restore(previous)
            torch.set_num_threads(self._threads)
            self.rollout.close()
            self.task.close()
            with suppress(OSError):  # a full disk is reported already
                self.log.close()

    def _reason(self, error: Exception) -> str:
        """Return the reason why training cannot continue; empty for an unknown error."""
        if isinstance(error, NonFiniteError | RolloutError):
            return str(error)
        if isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error):
            phase = self.clock.failed or "other"
            return f"out of memory in phase {phase!r}: {LOWER.get(phase, LOWER['forward'])}"
        if isinstance(error, OSError) and (error.filename or error.errno in OF_THE_DISK):
            return f"{error.filename or self.config.out}: {error.strerror}"
        return unwritable(self.config.out)  # torch and safetensors raise other errors for a full disk or quota

    def _is_stopped(self) -> bool:
        """Return True, on all ranks, if a signal has reached one of them."""
        self.stopped_by = self.ranks.most(self._stop.number)
        return self.stopped_by > 0

    @property
    def interrupted(self) -> bool:
        """True if a signal ended the run before its last step."""
        return self.step < self.config.steps

    def _train_step(self) -> dict[str, float]:
        parts: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(Step)}
        metrics = Step(**parts).take(self.step)
        give_back(self.step)
        if self.config.guard.does("roll_back"):
            metrics["guard/roll_backs"] = float(self.roll_backs)
        return metrics

    def _look_at_the_end(self) -> None:
        """Log evaluation and probes of the policy after the last update, if they are asked for."""
        if not self.held_out.is_due_at_the_end(self.step):
            return
        self.sending.send(self.step)
        asked = self.held_out.ask(self.step, last=True)
        self.sending.release()
        if evaluated := self.held_out.measure(asked, self.step):
            self.log.log(self.step, evaluated)
        self.held_out.log_probes(asked, self.step, self.log)
