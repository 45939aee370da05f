"""Random ids and numbers from a seed."""

from random import Random

from ottla.ids import Uuid, random_uuid


class SeededRandomness:
    """`Randomness` from a `Random`: the same seed gives the same values."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def new_uuid(self) -> Uuid:
        return random_uuid(self._random.randbytes)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
