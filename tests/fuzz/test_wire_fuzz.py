"""Damaged bytes through every decoder of the wire: typed errors only, the same verdict as the interpreter's, bounded cost.

The seeds are fixed, so a failure is repeatable; its case and damage are in the assertion's text.
"""

import time
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.support.cases.wire_golden import Golden, golden_cases

from ottla.errors import DecodeError
from ottla.wire import UnsupportedVersion, decode, encode_bytes, interpreter
from ottla.wire.apis import APIS
from ottla.wire.binding import binding_of
from ottla.wire.framing import FrameSplitter
from ottla.wire.headers import parse_request
from ottla.wire.log_records import InternalLog, decode_coordinator_key, decode_coordinator_value, decode_metadata_record
from ottla.wire.messages.headers import RequestHeader

SECONDS_PER_DECODE_MAX = 2.0
BYTES_PER_INPUT_BYTE_MAX = 500
"""What one input byte may cost in memory: the smallest structs take a byte or two and become objects with all their fields."""

WRONG_COUNTS = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x7f\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80",
    b"\0",
)


def damaged(random: Random, data: bytes) -> bytes:
    """`data` with one to three random changes."""
    out = bytearray(data)
    for _ in range(random.randint(1, 3)):
        position = random.randrange(len(out) + 1)
        match random.randrange(6):
            case 0 if out:
                out[position % len(out)] ^= 1 << random.randrange(8)
            case 1:
                del out[position:]
            case 2:
                del out[position : position + random.randint(1, 4)]
            case 3:
                out[position:position] = random.randbytes(random.randint(1, 8))
            case 4:
                wrong = random.choice(WRONG_COUNTS)
                out[position : position + len(wrong)] = wrong
            case _:
                out[position:position] = out[: random.randint(0, 40)]
    return bytes(out)


def outcome(call: Callable[..., Any], *arguments: Any) -> str:
    """The result of a call as text, so that NaN is equal to itself. Fails if the call takes too long."""
    started = time.process_time()
    try:
        result = repr(call(*arguments))
    except DecodeError as error:
        result = f"refused at {error.position}: {error}"
    assert time.process_time() - started < SECONDS_PER_DECODE_MAX
    return result


def check(golden: Golden, data: bytes) -> bool:
    """Decode with the compiled decoder and the interpreter and compare. Returns whether the data was refused."""
    compiled = outcome(decode, golden.cls, golden.version, data)
    plain = outcome(interpreter.decode, binding_of(golden.cls), golden.version, data)
    assert comparable(compiled) == comparable(plain), f"{golden.cls.__name__} version {golden.version}: {data.hex()}"
    return compiled.startswith("refused")


def comparable(text: str) -> str:
    """`text` without the addresses of memoryviews."""
    parts = text.split("<memory at 0x")
    return "".join([parts[0], *(part.split(">", 1)[1] for part in parts[1:])])


@pytest.mark.parametrize("seed", range(8))
def test_every_decoder_survives_damage(seed: int) -> None:
    random = Random(seed)
    refused = 0
    for golden in golden_cases():
        refused += check(golden, damaged(random, golden.data))
    assert 0.2 < refused / len(golden_cases()) < 0.98, "some damage must be refused, and some must not"


def test_every_cut_of_one_case_per_message() -> None:
    seen = set()
    for golden in golden_cases():
        if golden.fill != "set" or golden.cls in seen:
            continue
        seen.add(golden.cls)
        for size in range(0, len(golden.data), max(1, len(golden.data) // 12)):
            with pytest.raises(DecodeError):
                decode(golden.cls, golden.version, golden.data[:size])
    assert len(seen) > 250


def test_memory_is_bounded_by_the_input() -> None:
    random = Random(99)
    cases = [golden for golden in golden_cases() if golden.fill in ("set", "extremes")]
    for golden in random.sample(cases, 400):
        decode(golden.cls, golden.version, golden.data)  # compiled and warm
        data = damaged(random, golden.data)
        tracemalloc.start()
        outcome(decode, golden.cls, golden.version, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100_000 + BYTES_PER_INPUT_BYTE_MAX * len(data), f"{golden.cls.__name__} {golden.version}: {data.hex()}"


@pytest.mark.parametrize("wrong", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xfe\xff\xff\xff\x0f"])
def test_wrong_counts_allocate_nothing(wrong: bytes) -> None:
    for golden in golden_cases():
        if golden.fill != "set":
            continue
        tracemalloc.start()
        for position in range(0, len(golden.data), max(1, len(golden.data) // 3)):
            data = golden.data[:position] + wrong
            outcome(decode, golden.cls, golden.version, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5_000_000


def test_requests_survive_damage() -> None:
    random = Random(5)
    requests = [golden for golden in golden_cases() if golden.cls.KEY >= 0 and golden.cls.__name__.endswith("Request")]
    for golden in requests:
        header = RequestHeader(request_api_key=golden.cls.KEY, request_api_version=golden.version, client_id="client")
        flexible = APIS[golden.cls.KEY].is_flexible(golden.version)
        frame = encode_bytes(header, 2 if flexible else 1) + golden.data
        assert parse_request(bytearray(frame))[0].client_id == "client"
        try:
            parse_request(bytearray(damaged(random, frame)))
        except (DecodeError, UnsupportedVersion):
            pass


def test_internal_records_survive_damage() -> None:
    random = Random(6)
    for golden in golden_cases():
        name = golden.cls.__name__
        if golden.cls.KEY < 0 or not name.endswith(("Record", "Key", "Value")):
            continue
        for _ in range(10):
            log = random.choice([InternalLog.GROUPS, InternalLog.TRANSACTIONS, InternalLog.SHARE_STATE])
            try:
                if name.endswith("Record"):
                    decode_metadata_record(damaged(random, bytes((1, golden.cls.KEY, golden.version)) + golden.data))
                else:
                    prefix = golden.cls.KEY.to_bytes(2, "big")
                    key = decode_coordinator_key(log, damaged(random, prefix + golden.data))
                    decode_coordinator_value(log, key, damaged(random, golden.version.to_bytes(2, "big") + golden.data))
            except DecodeError:
                pass


def test_frame_splitter_survives_damage() -> None:
    random = Random(7)
    stream = b"".join(len(golden.data).to_bytes(4, "big") + golden.data for golden in golden_cases()[:200])
    for _ in range(300):
        splitter = FrameSplitter(10_000, bytearray(random.choice([4, 100, 65536])))
        data = damaged(random, stream)
        try:
            while data:
                size = random.randint(1, 5000)
                assert all(len(frame) <= 10_000 for frame in splitter.feed(data[:size]))
                data = data[size:]
        except DecodeError:
            pass
