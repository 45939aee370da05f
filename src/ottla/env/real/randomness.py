"""Chance, from the operating system."""

import os

from ottla.ids import Uuid, uuid_text


class RealRandomness:
    """`Randomness` that nobody can predict."""

    def new_uuid(self) -> Uuid:
        while True:
            raw = bytearray(os.urandom(16))
            # The bits of a random UUID (version 4), as Kafka's have; none of the reserved ids has them.
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            uuid = Uuid(bytes(raw))
            if not uuid_text(uuid).startswith("-"):
                return uuid

    def below(self, limit: int) -> int:
        if limit < 1:
            raise ValueError(f"there is no whole number from 0 up to {limit}")
        bits = (limit - 1).bit_length()
        while True:
            number = int.from_bytes(os.urandom((bits + 7) // 8), "big") >> (-bits % 8)
            if number < limit:
                return number
