"""Random numbers keyed by their purpose, not by the order of the calls.

The number of a token depends only on (seed, step, token), so the same tokens are drawn on one rank or eight, and a
run inside a batch of runs gets the same numbers as alone. The hash is the finaliser of SplitMix64
(Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators").
"""

import zlib

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2 = 0x94D049BB133111EB - (1 << 64)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Return the logical right shift of int64 (torch's own is arithmetic)."""
    return (x >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    """Apply the finaliser in place, because memory traffic dominates on large tensors."""
    for bits, factor in ((30, _MIX_1), (27, _MIX_2), (31, 1)):
        x ^= _shift_right(x, bits)
        if factor != 1:
            x *= factor
    return x


def hash_bits(*keys: int | Tensor) -> Tensor:
    """Hash integer keys that broadcast together into int64 of their common shape."""
    state = torch.zeros((), dtype=torch.int64)
    for key in keys:
        state = _mix((state ^ key).add_(_GOLDEN))
    return state


def uniform(*keys: int | Tensor) -> Tensor:
    """Return uniform numbers in (0, 1), float64, one for each element of the keys' common shape."""
    return _shift_right(hash_bits(*keys), 12).double().add_(0.5).mul_(2.0**-52)


def normal(*keys: int | Tensor) -> Tensor:
    """Return standard normal numbers, float64, one for each element of the keys' common shape."""
    return torch.special.ndtri(uniform(*keys))


def salt(name: str) -> int:
    """Return a key that keeps the draws of two purposes apart."""
    return zlib.crc32(name.encode())


def generator_seed(*keys: int | str) -> int:
    """Return a seed for a library's random generator, keyed like the other draws; strings name a purpose."""
    return int(hash_bits(*(salt(key) if isinstance(key, str) else key for key in keys))) & (1 << 62) - 1
