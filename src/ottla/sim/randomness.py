"""Chance, from a seed."""

from random import Random

from ottla.ids import Uuid, uuid_text


class SeededRandomness:
    """`Randomness` that repeats itself with its `Random`."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def new_uuid(self) -> Uuid:
        while True:
            raw = bytearray(self._random.randbytes(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            uuid = Uuid(bytes(raw))
            if not uuid_text(uuid).startswith("-"):
                return uuid

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
