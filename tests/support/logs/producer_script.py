"""Producer scripts: steps for our producer state and Apache's, which print the same lines if they agree.

One step per line; `ProducerOracle.java` is the Apache side.

    new                                                         forget everything
    data ORIGIN id epoch firstSeq lastSeq firstOffset lastOffset transactional
    marker ORIGIN id epoch coordinatorEpoch commit|abort offset transactionVersion
    verify id sequence epoch supportsEpochBump                  a transaction verification begins
    high-watermark OFFSET | log-start OFFSET | expire NOW_MS
"""

from collections.abc import Iterable
from random import Random

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.producers.producer_state import ProducerState
from ottla.records.batch import BatchView
from ottla.records.layout import HEADER, TRANSACTIONAL

EXPIRATION_MS = 86_400_000
APACHE_NAMES = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequence",
    ErrorCode.INVALID_PRODUCER_EPOCH: "InvalidProducerEpoch",
    ErrorCode.INVALID_TXN_STATE: "InvalidTxnState",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "TransactionCoordinatorFenced",
}


def run_script(lines: Iterable[str]) -> list[str]:
    """The result of our producer state for each step."""
    state = ProducerState("t-0")
    output = []
    for line in lines:
        if not line or line.startswith("#"):
            continue
        if line == "new":
            state = ProducerState("t-0")
            output.append(line)
            continue
        try:
            answer = _step(state, line.split(" "))
        except KafkaError as refused:
            answer = APACHE_NAMES[ErrorCode(refused.code)]
        output.append(f"{line} => {answer} | {_shown(state)}")
    return output


def _step(state: ProducerState, words: list[str]) -> str:
    match words:
        case ["data", origin, *numbers]:
            return _data(state, AppendOrigin[origin], *map(int, numbers))
        case ["marker", origin, producer_id, epoch, coordinator_epoch, outcome, offset, transaction_version]:
            append = state.begin(AppendOrigin[origin], transaction_version=int(transaction_version))
            append.add_marker(
                int(producer_id), int(epoch), int(coordinator_epoch), outcome == "abort", int(offset), 1000 + int(offset)
            )
            append.transactional_producers.append(int(producer_id))
            ended = state.apply(append, int(offset) + 1)
            if not ended:
                return "ok"
            assert len(ended) == 1
            outcome = "abort" if ended[0].aborted else "commit"
            return f"ended {ended[0].first_offset} {ended[0].last_offset} {outcome} {ended[0].last_stable_offset}"
        case ["verify", producer_id, sequence, epoch, bump]:
            entry = state.producers.get(int(producer_id))
            if entry is None or (entry.transaction_first_offset is None and entry.epoch <= int(epoch)):
                state.begin_verification(int(producer_id), int(sequence), int(epoch), bump == "1", now_ms=2**62)
        case ["high-watermark", offset]:
            state.on_high_watermark(int(offset))
        case ["log-start", offset]:
            state.on_log_start(int(offset))
        case ["expire", now_ms]:
            state.remove_expired(int(now_ms), EXPIRATION_MS)
        case _:
            raise ValueError(words)
    return "ok"


def _data(
    state: ProducerState,
    origin: AppendOrigin,
    producer_id: int,
    epoch: int,
    first_sequence: int,
    last_sequence: int,
    first_offset: int,
    last_offset: int,
    transactional: int,
) -> str:
    offset_delta = last_offset - first_offset
    attributes = TRANSACTIONAL if transactional else 0
    timestamp = 1000 + last_offset
    numbers = (first_offset, 49, 0, 2, 0, attributes, offset_delta, timestamp, timestamp, producer_id, epoch, first_sequence)
    batch = BatchView(HEADER.pack(*numbers, offset_delta + 1))
    assert batch.last_sequence == last_sequence
    append = state.begin(origin)
    duplicate = append.add(batch, first_offset)
    if duplicate is not None:
        return f"duplicate {duplicate.first_offset} {duplicate.last_offset} {duplicate.timestamp_ms}"
    state.apply(append, last_offset + 1)
    return "ok"


def _shown(state: ProducerState) -> str:
    def or_none(offset: int | None) -> int:
        return -1 if offset is None else offset

    text = f"unstable {or_none(state.first_unstable_offset)} undecided {or_none(state.first_undecided_offset)}"
    for entry in sorted(state.producers.values(), key=lambda entry: entry.producer_id):
        batches = "".join(f" {batch.last_sequence}@{batch.first_offset}-{batch.last_offset}" for batch in entry.batches)
        first_offset = or_none(entry.transaction_first_offset)
        text += (
            f" [{entry.producer_id} {entry.epoch} {entry.coordinator_epoch} {entry.last_timestamp_ms} {first_offset}{batches}]"
        )
    return text


def random_script(random: Random, steps: int = 60) -> list[str]:
    """Three producers that mostly send valid batches, so that the state grows, and sometimes invalid ones."""
    lines = ["new"]
    offset = high_watermark = 0
    epochs = {1: 0, 2: 0, 3: 0}
    sequences: dict[tuple[int, int], int] = {}
    for _ in range(steps):
        dice = random.random()
        producer_id = random.choice([1, 2, 3])
        epoch = epochs[producer_id]
        if dice < 0.62:
            count = random.randint(1, 3)
            epoch = max(0, epoch + random.choice([0] * 12 + [1, -1]))
            first = sequences.get((producer_id, epoch), random.choice([0, 0, 0, 4])) + random.choice([0] * 10 + [1, -1, -count])
            first = 2**31 - 2 if random.random() < 0.02 else first % 2**31
            last = (first + count - 1) % 2**31
            origin = random.choice(["CLIENT"] * 8 + ["REPLICATION", "COORDINATOR"])
            transactional = int(producer_id == 1 or (producer_id == 2 and random.random() < 0.1))
            lines.append(f"data {origin} {producer_id} {epoch} {first} {last} {offset} {offset + count - 1} {transactional}")
            sequences[producer_id, epoch] = (last + 1) % 2**31
            offset += count
        elif dice < 0.85:
            version = random.choice([1, 1, 2])
            epoch = max(0, epoch + (version == 2 and random.random() < 0.8) + random.choice([0] * 8 + [-1]))
            origin = random.choice(["COORDINATOR"] * 5 + ["REPLICATION"])
            coordinator_epoch = random.choice([0, 0, 0, 1, 1, 2])
            outcome = random.choice(["commit", "abort"])
            lines.append(f"marker {origin} {producer_id} {epoch} {coordinator_epoch} {outcome} {offset} {version}")
            offset += 1
            if epoch > epochs[producer_id]:
                sequences[producer_id, epoch] = 0
        elif dice < 0.93:
            high_watermark = random.randint(high_watermark, offset)
            lines.append(f"high-watermark {high_watermark}")
        elif dice < 0.97:
            lines.append(f"expire {EXPIRATION_MS + 1000 + offset - random.randint(0, 20)}")
        else:
            lines.append(f"log-start {random.randint(0, offset)}")
        epochs[producer_id] = max(epochs[producer_id], epoch)
    return lines
