"""Chance, from the operating system."""

import os

from ottla.ids import Uuid, random_uuid


class RealRandomness:
    """`Randomness` that nobody can predict."""

    def new_uuid(self) -> Uuid:
        return random_uuid(os.urandom)

    def below(self, limit: int) -> int:
        if limit < 1:
            raise ValueError(f"there is no whole number from 0 up to {limit}")
        bits = (limit - 1).bit_length()
        while True:
            number = int.from_bytes(os.urandom((bits + 7) // 8), "big") >> (-bits % 8)
            if number < limit:
                return number
