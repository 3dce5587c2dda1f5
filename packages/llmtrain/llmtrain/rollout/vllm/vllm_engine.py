"""Rollout engine vLLM: a separate copy of the policy, which receives new weights after each update.

    on a CPU            float32, in the trainer's process; with tensor_parallel_size above 1, or for a family that vLLM
                        runs by transformers' own classes, in separate processes
    on CUDA             bfloat16, in a separate process, on the GPU of its rank
    (rollout.dtype chooses another precision)

Input: token ids of the prompts, a seed for each. Output: token ids and their log-probabilities at the sampling
temperature.
"""

import gc
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from transformers import AutoConfig

from entrostat.settings.installation import missing

from ...policy.own_code import refusing_code
from ...process.gpu_memory import empty_cache
from ...process.local_ranks import world_size
from ...sequences.rollouts import Rollouts
from ...settings.config import RolloutConfig, TrainConfig
from ..rollout_engine import Pending, Request, RolloutEngine, RolloutError, Start, Weights
from .vllm_start import apart, changes_transformers, check_allocator, check_heads, dtype_of, environment, options


class VLLMEngine(RolloutEngine):
    """vLLM engine of one trainer rank. After a RolloutError it can only be closed.

    A request repeats bit for bit on a CPU, whatever else is in the batch; on a GPU rounding depends on the batch, and
    tokens may differ. A call cannot be interrupted: `timeout` applies only if another process holds the engine.

    Args:
        folder: model folder; weights of version 0.
        stop_token_ids: all tokens that end a response, including eos.
        rank: rank whose share of a request is answered.
        device: cpu or cuda.
        transport: transport of weights from another process (see sender.py), by `transfer` and then `accept`.
            None: `update` is called here.
        sleep_level: state of the weights after `release` on CUDA: 1 keeps a copy in host memory, 2 keeps nothing, so
            that the next request needs an update; 0 makes `release` a no-op.
        lora_rank: rank of the adapters sent instead of weights, by value or as a file; 0 for whole weights.

    Raises:
        ValueError: if vLLM on a CPU does not support the model's head size.
        RolloutError: if vLLM does not start.
    """

    version: int | None = 0
    continues = True
    published = True

    def __init__(
        self,
        folder: str | Path,
        config: RolloutConfig,
        stop_token_ids: Sequence[int],
        *,
        rank: int = 0,
        device: str = "cpu",
        transport: str | None = None,
        sleep_level: int = 0,
        lora_rank: int = 0,
        trust_remote_code: bool = False,
    ) -> None:
        self.config, self.rank, self.device, self.lora_rank = config, rank, device, lora_rank
        self.stop_token_ids = list(stop_token_ids)
        self.sleep_level, self.asleep = sleep_level if device != "cpu" else 0, False
        self.guest = dist.is_initialized()
        """True if the process had a default process group before; otherwise vLLM makes one and destroys it."""
        self.adapter: Any = None
        """Adapter request of vLLM; None before the first update, when the model answers."""
        with refusing_code(folder):
            model = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
        check_heads(model.get_text_config(decoder=True), device)
        self.limit = config.max_model_len or model.get_text_config(decoder=True).max_position_embeddings
        workers = config.tensor_parallel_size
        self.environment: dict[str, str] = {}
        with self._call("start"):
            own = device != "cpu" or workers > 1 or changes_transformers(model)
        used = transport or ("value" if not own else "file" if lora_rank or device == "cpu" else "ipc")
        self.environment = environment(device, own, workers)
        self.llm: Any = None
        with self._call("start"):
            from vllm import LLM

            from .sender import BACKENDS, Client, Parameters, make_sender, packed_bytes

            self.llm = LLM(
                str(folder),
                weight_transfer_config={"backend": "checked_adapter" if lora_rank else BACKENDS[used]},
                worker_extension_cls="llmtrain.rollout.vllm.receiver.Extension",
                enable_sleep_mode=self.sleep_level > 0,
                trust_remote_code=trust_remote_code,
                **options(config, device, self.limit, lora_rank),
            )
            self.llm.update_weight_version("0")
            self.client = Client(self.llm)
            place = "cpu" if used == "file" else device  # files are written from the CPU
            self.source = Parameters(dtype_of(config, device), place)
            self.sender = None
            if transport is None:
                buffer = packed_bytes(model, self.source.dtype, trust_remote_code) if used == "ipc" else 0
                self.sender = make_sender(used, self.client, self.source, workers=workers, buffer=buffer)

    @classmethod
    def check(cls, config: TrainConfig) -> None:
        """Raise ValueError if vLLM is missing, does not support the model's head size, or has too few GPUs.

        Also if torch's memory cannot be shown to the engine on the same GPU.
        """
        if config.device == "cuda" and config.topology.placement == "colocated":
            check_allocator(os.environ)
        if find_spec("vllm") is None:
            raise ValueError(missing("vllm"))
        if config.model.path is None:
            check_heads(config.model, config.device)
        alone = world_size(config.nproc) == 1 or config.topology.name == "ray"
        if config.rollout.tensor_parallel_size > 1 and config.device == "cuda" and not alone:
            raise ValueError("rollout.tensor_parallel_size above 1 needs --topology.name ray: a rank has one GPU")

    @classmethod
    def start(cls, start: Start) -> "VLLMEngine":
        return VLLMEngine(
            start.folder,
            start.config,
            start.stop_token_ids,
            rank=start.rank,
            device=start.device,
            transport=start.transport,
            sleep_level=start.sleep_level,
            lora_rank=start.lora_rank,
            trust_remote_code=start.trust_remote_code,
        )

    # Requests -----------------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> Pending:
        """Sample before returning; the returned function does not wait."""
        mine, counts = request.shares[self.rank], request.counts
        self._check_lengths(request)
        completions = []
        if self.version is None:
            raise RolloutError("rollout engine vllm has no weights since its release: send them first")
        if mine:
            with self._call("answer"):
                self._wake_up()
                completions = self._generate(request)
        owners = [i for i in mine for _ in range(counts[i])]
        rollouts = self._pack(completions, request.prompt_ids, owners, self.version)
        return lambda: rollouts

    def _check_lengths(self, request: Request) -> None:
        mine, limits = request.shares[self.rank], request.limits
        sizes = [len(request.prompt_ids[i]) for i in mine] or [1]
        if not min(sizes):
            raise ValueError("a prompt has no tokens")
        size, new = max(((len(request.prompt_ids[i]), limits[i]) for i in mine), key=sum, default=(1, 1))
        if size + new > self.limit:
            raise RolloutError(
                f"a prompt of {size} tokens plus max_new_tokens {new} exceeds "
                f"rollout.max_model_len {self.limit}: raise it, or lower rollout.max_new_tokens"
            )

    def _generate(self, request: Request) -> list[Any]:
        """Return vLLM's completions of this rank, grouped by prompt.

        With top_p below 1, log-probabilities are within the nucleus.
        """
        from vllm import SamplingParams

        mine, sampling = request.shares[self.rank], request.sampling
        seeds, counts, limits = request_seeds(request), request.counts, request.limits
        wanted = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "ignore_eos": True,  # only stop_token_ids end a response
            "stop_token_ids": self.stop_token_ids,
            "logprobs": 0,
            "flat_logprobs": True,
            "detokenize": False,
        }
        outputs = self.llm.generate(
            [{"prompt_token_ids": request.prompt_ids[i]} for i in mine],
            [SamplingParams(n=counts[i], max_tokens=limits[i], seed=seeds[i], **wanted) for i in mine],
            use_tqdm=False,
            lora_request=self.adapter,
        )
        return [completion for output in outputs for completion in sorted(output.outputs, key=lambda c: c.index)]

    def _pack(self, completions: list[Any], prompt_ids: list[list[int]], owners: list[int], version: int) -> Rollouts:
        """Return rollouts of vLLM's completions. Raises RolloutError if they are incomplete or used other weights."""
        versions = {span.version for completion in completions for span in completion.weight_versions}
        if versions - {str(version)}:
            raise RolloutError(f"vllm answered with weights {', '.join(sorted(versions))}; it was sent {version}")
        for completion in completions:
            if completion.finish_reason not in ("stop", "length"):
                raise RolloutError(f"vllm aborted a response: {completion.finish_reason}")
            if list(completion.logprobs.token_ids) != list(completion.token_ids):
                raise RolloutError("vllm returned log-probabilities of tokens that it did not sample")
        return Rollouts(
            prompt_ids=prompt_ids,
            response_ids=torch.tensor([t for c in completions for t in c.token_ids], dtype=torch.long),
            response_lengths=torch.tensor([len(c.token_ids) for c in completions], dtype=torch.long),
            logp=torch.tensor([x for c in completions for x in c.logprobs.logprobs], dtype=torch.float32),
            prompt_index=torch.tensor(owners, dtype=torch.long),
            finished=torch.tensor([c.finish_reason == "stop" for c in completions], dtype=torch.bool),
            version=torch.tensor(version),
        )

    # Weights ------------------------------------------------------------------------------------------------------

    def update(self, weights: Weights, version: int) -> None:
        assert self.sender is not None, "weights come from another process"
        empty_cache()  # of this trainer, which has trained while the engine slept
        with self._call("take new weights"):
            if self.asleep:
                self.llm.wake_up(["weights"])
            self.source.hold(weights)
            self.client.version = version
            self.sender.send_weights()
            self.source.weights = ()
        empty_cache()  # free memory of the sent weights
        self.accept(version, self.source.sent)

    def transfer(self, call: str, *args: Any) -> None:
        """Run a call of a sender in another process on the `Client`."""
        with self._call("take new weights"):
            if self.asleep and call == "start_weight_update":
                self.llm.wake_up(["weights"])
            getattr(self.client, call)(*args)

    def accept(self, version: int, sent: dict[str, int]) -> None:
        """Finish an update: answer with this version from now on.

        sent: checksums of the weights at the sender (`Parameters.sent`).
        Raises RolloutError unless vLLM reports this version, and every worker these checksums.
        """
        with self._call("take new weights"):
            told, arrived = self.llm.get_weight_version(), self.llm.collective_rpc("arrived_weights")
        if told != str(version):
            raise RolloutError(f"vllm reports weights {told}; it was sent {version}")
        for worker, found in enumerate(arrived):
            wrong = sorted(name for name in sent | found if sent.get(name) != found.get(name))
            if wrong:
                raise RolloutError(
                    f"weights {version}: {len(wrong)} of {len(sent)} tensors reached vllm's worker {worker} with other "
                    f"checksums, {wrong[0]} first"
                )
        with self._call("take new weights"):
            if self.lora_rank:
                from .vllm_adapter import REQUEST

                self.llm.collective_rpc("use_adapter")
                self.adapter = REQUEST
            fresh = self.llm.reset_prefix_cache()
        if not fresh:
            raise RolloutError(f"weights {version}: vllm kept its prefix cache of older weights")
        with self._call("wake up"):
            self._wake_up("kv_cache")
        self.version = version

    # Life ---------------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Release GPU memory as set by `sleep_level`. The next request or update wakes the engine."""
        if not self.sleep_level or self.asleep:
            return
        with self._call("sleep"):
            self.llm.sleep(level=self.sleep_level)
        self.asleep = True
        if self.sleep_level == 2:
            self.version = None

    def _wake_up(self, *tags: str) -> None:
        """Reallocate the memory of these tags, or of all if none are given."""
        if self.asleep:
            self.llm.wake_up(list(tags) or None)
            self.asleep = False

    def close(self) -> None:
        if self.llm is None:
            return
        with self._call("stop"):
            self.llm.llm_engine.engine_core.shutdown()
        del self.client, self.sender
        self.llm = None
        gc.collect()

    @contextmanager
    def _call(self, what: str) -> Iterator[None]:
        """Run vLLM calls with failures renamed and side effects contained."""
        try:
            with apart(self.environment, self.guest):
                yield
        except Exception as error:
            found: list[Any] = getattr(error, "errors", list)()  # of a check of types; its first line only counts them
            said = (found[0]["msg"] if found else str(error).strip() or "no reason given").splitlines()[0]
            if "failed to be inspected" in said and find_spec("torchvision") is None:
                said += " They may need torchvision: pip install torchvision"
            if "Too many open files" in said:
                said += "; allow more with: ulimit -n 4096"
            raise RolloutError(f"rollout engine vllm could not {what}: {type(error).__name__}: {said}") from error


def request_seeds(request: Request) -> list[int]:
    """Return a seed for each prompt of a request; that of a response which goes on is of its place in its own request.

    So its draws depend on where it was interrupted, but not on the other responses.
    """
    places = [blake2b(repr(begun).encode(), digest_size=8).digest() for begun in request.begun]
    begun = [int.from_bytes(digest, "big") >> 2 for digest in places]
    return prompt_seeds(request.seed, request.prompt_ids[: request.new]) + begun


def prompt_seeds(seed: int, prompt_ids: Sequence[Sequence[int]]) -> list[int]:
    """Return a 62-bit seed for each prompt, from the request's seed and the prompt's tokens; repeats are counted.

    vLLM draws the samples of a prompt with this seed and the following ones.
    """
    seeds, seen = [], Counter[tuple[int, ...]]()
    for ids in map(tuple, prompt_ids):
        digest = blake2b(repr((seed, seen[ids], ids)).encode(), digest_size=8).digest()
        seeds.append(int.from_bytes(digest, "big") >> 2)
        seen[ids] += 1
    return seeds
