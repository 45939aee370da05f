"""Chance, from a seed."""

from random import Random

from ottla.ids import Uuid, random_uuid


class SeededRandomness:
    """`Randomness` that repeats itself with its `Random`."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def new_uuid(self) -> Uuid:
        return random_uuid(self._random.randbytes)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
