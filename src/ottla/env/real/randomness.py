"""Random ids and numbers from the operating system."""

import os

from ottla.ids import Uuid, random_uuid


class RealRandomness:
    """`Randomness` from `os.urandom`: unpredictable."""

    def new_uuid(self) -> Uuid:
        return random_uuid(os.urandom)

    def below(self, limit: int) -> int:
        if limit < 1:
            raise ValueError(f"the limit of a random number must be at least 1, not {limit}")
        bits = (limit - 1).bit_length()
        while True:
            number = int.from_bytes(os.urandom((bits + 7) // 8), "big") >> (-bits % 8)
            if number < limit:
                return number
