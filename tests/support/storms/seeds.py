"""The seed of every random choice: the same on every run, unless another one is asked for."""

import os

USUAL = 20_260_101


def storm_seed() -> int:
    """`STORM_SEED` in the environment, or the usual one; said either way."""
    seed = int(os.environ.get("STORM_SEED", USUAL))
    print(f"STORM_SEED={seed}")  # noqa: T201 pytest shows it when the test fails
    return seed
