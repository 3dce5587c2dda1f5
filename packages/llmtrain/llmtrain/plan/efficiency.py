"""Constants of the cost model with their sources. None was fitted to the runs of `published.py`."""

from .gpu import GIB

BANDWIDTH_SHARE = 0.685
"""Share of the memory bandwidth that decoding reaches: 1,397 of 2,039 GB/s on an A100, Llama-2-7B in bf16, batch 1
(README of gpt-fast). All other memory-bound work is assumed to reach the same share."""
ALLREDUCE_SECONDS = 40e-6
"""Latency of one all-reduce of a decode step under tensor parallelism, without its transfer time: gpt-fast's
Llama-2-7B takes 7.34 ms per token on two A100, while half of the time on one is 4.77 ms, with 64 all-reduces."""
HOST_SECONDS = 3e-3
"""Minimum time of a decode step, set by the scheduler on the CPU: batch 32 of an 8B model on an H200 left the GPU idle
for 24% of the time without overlap (Hugging Face, asynchronous continuous batching, 2026), about 3 ms in addition to
11 ms of work. Here the two overlap, so this limits only small batches of small models."""
SAMPLER_PASSES = 6
"""Passes of the sampler over the fp32 logits of a step: scale, maximum, exponent and sum, divide, log-probability,
draw. An estimate."""
LINK_SHARE = 0.82
"""Share of a link's bandwidth that collectives of large buffers reach: 370 of NVLink's 450 GB/s, according to NCCL's
maintainers (NVIDIA/nccl-tests, issue 212)."""
HOST_BANDWIDTH = 50e9
"""Host memory bandwidth per GPU (bytes/s): two sockets of about 200 GB/s for eight GPUs. An estimate."""
IPC_PASSES = 16
"""Passes over the weights in GPU memory when they are sent by ipc: packed and loaded, two each, and a checksum at both
ends, six each."""
BACKWARD_ATTENTION = 2.5
"""Work of FlashAttention's backward pass relative to its forward pass: five matrix products to two."""

RESERVED_BYTES = 4 * GIB
"""Memory per GPU for everything not modelled: CUDA contexts of trainer and engine, NCCL buffers, CUDA graphs,
fragmentation. An estimate."""
MOST_UTILIZATION = 0.9
"""Upper limit for the rollout engine's share of a GPU if it is not set; vLLM's old default."""
BATCHED_TOKENS = 8192
"""Prefill tokens that the engine's activations are sized for; vLLM uses 8,192 or 16,384 on these GPUs."""
GRADIENT_BUCKET_BYTES = 8 * 10**8
"""Gradient memory left on the GPU if gradients are offloaded: the engine's bucket of 2e8 gradients in fp32."""

HEAD_CHUNK_TOKENS = 4096
HEAD_CHUNK_BYTES = 5 << 29
"""Upper limits for a chunk of the fused head: tokens, and bytes of fp32 logits, as in `kernels.projection` on CUDA."""
HEAD_BUFFERS = 2
"""Buffers of that size: logits, and their gradient."""
