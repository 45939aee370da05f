"""Producer state against a plain model: a list of everything that was ever appended, searched at each step."""

from dataclasses import dataclass, field

from hypothesis import event, given
from hypothesis import strategies as st

from ottla.errors import KafkaError
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.producers.producer_entry import BatchMetadata
from ottla.log.producers.producer_state import ProducerState


@dataclass
class Model:
    """Data is (producer, epoch, first and last sequence, first and last offset), markers are (producer, epoch, offset)."""

    data: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    markers: list[tuple[int, int, int]] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    ended: list[tuple[int, int]] = field(default_factory=list)

    def epoch(self, producer: int) -> int | None:
        seen = [(row[4], row[1]) for row in self.data if row[0] == producer]
        seen += [(row[2], row[1]) for row in self.markers if row[0] == producer]
        return max(seen)[1] if seen else None

    def recent(self, producer: int, epoch: int) -> list[tuple[int, int, int, int, int, int]]:
        return [row for row in self.data if row[:2] == (producer, epoch)][-5:]

    def verdict(self, producer: int, epoch: int, first: int, last: int) -> str:
        known = self.epoch(producer)
        if known is None:
            return "append"
        if any(row[2:4] == (first, last) for row in self.recent(producer, epoch)) and epoch == known:
            return "duplicate"
        if epoch < known:
            return "refuse"
        before = self.recent(producer, epoch)
        expected = before[-1][3] + 1 if before else 0
        return "append" if first == expected else "refuse"

    def first_unstable(self, high_watermark: int) -> int | None:
        unsettled = [first for first, last in self.ended if last >= high_watermark]
        return min([*self.open.values(), *unsettled], default=None)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(1, 2), st.integers(-1, 1), st.integers(-3, 1), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("end"), st.integers(1, 2), st.integers(0, 1), st.booleans()),
        st.tuples(st.just("high watermark"), st.integers(0, 5)),
    ),
    max_size=40,
)


@given(STEPS)
def test_state_agrees_with_a_list_of_everything(steps: list[tuple]) -> None:  # type: ignore[type-arg]  # rows of three shapes
    state, model = ProducerState("t-0"), Model()
    offset = high_watermark = 0
    for step in steps:
        if step[0] == "data":
            _, producer, epoch_step, slip, count, transactional = step
            transactional = producer in model.open or (transactional and producer == 1)
            epoch = max(0, (model.epoch(producer) or 0) + epoch_step)
            before = model.recent(producer, epoch)
            first = max(0, (before[-1][3] + 1 if before else 0) + slip)
            row = (producer, epoch, first, first + count - 1, offset, offset + count - 1)
            verdict = model.verdict(*row[:4])
            event(verdict)
            assert ask(state, row, transactional) == verdict
            if verdict == "append":
                model.data.append(row)
                if transactional:
                    model.open.setdefault(producer, offset)
                offset += count
        elif step[0] == "end":
            _, producer, epoch_step, commit = step
            epoch = (model.epoch(producer) or 0) + epoch_step
            append = state.begin(AppendOrigin.COORDINATOR)
            append.add_marker(producer, epoch, 0, not commit, offset, 0)
            ended = state.apply(append, offset + 1)
            model.markers.append((producer, epoch, offset))
            began = model.open.pop(producer, None)
            assert [(end.first_offset, end.last_offset, end.aborted) for end in ended] == (
                [] if began is None else [(began, offset, not commit)]
            )
            if began is not None:
                model.ended.append((began, offset))
                assert ended[0].last_stable_offset == min(model.open.values(), default=offset + 1)
            offset += 1
        else:
            high_watermark = min(offset, high_watermark + step[1])
            state.on_high_watermark(high_watermark)
        assert state.first_unstable_offset == model.first_unstable(high_watermark)
        assert state.first_undecided_offset == min(model.open.values(), default=None)
        for producer, entry in state.producers.items():
            assert entry.epoch == model.epoch(producer)
            assert [batch[:4] for batch in entry.batches] == [row[2:] for row in model.recent(producer, entry.epoch)]


def ask(state: ProducerState, row: tuple[int, int, int, int, int, int], transactional: bool) -> str:
    """Check a client's batch, and apply it if it is accepted."""
    producer, epoch, first, last, first_offset, last_offset = row
    known = state.producers.get(producer)
    if known is not None and known.find_duplicate(epoch, first, last) is not None:
        return "duplicate"
    append = state.begin(AppendOrigin.CLIENT)
    try:
        append.add_data(producer, epoch, BatchMetadata(first, last, first_offset, last_offset, 0), transactional)
    except KafkaError:
        return "refuse"
    state.apply(append, last_offset + 1)
    return "append"
