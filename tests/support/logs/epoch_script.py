"""Leader epoch scripts: steps for our leader epochs and Apache's, which print the same lines if they agree.

new | assign EPOCH OFFSET | truncate-end OFFSET | truncate-start OFFSET
end-offset EPOCH LOG_END | epoch-for OFFSET | neighbours EPOCH
"""

from collections.abc import Iterable
from random import Random

from ottla.log.leader_epochs import LeaderEpochs
from ottla.sim.disk import MemoryDisk


def run_epoch_script(lines: Iterable[str]) -> list[str]:
    """The result of our leader epochs for each step."""
    epochs = LeaderEpochs(MemoryDisk(), "/t-0")
    output = []
    for line in lines:
        answer = "ok"
        match line.split(" "):
            case ["new"]:
                epochs = LeaderEpochs(MemoryDisk(), "/t-0")
            case ["assign", epoch, offset]:
                start = dict(epochs.entries).get(int(epoch))
                if start is not None and int(epoch) != epochs.latest:
                    epochs.truncate_from_end(start)  # ours would stay, on purpose: see `LeaderEpochs.assign`
                epochs.assign(int(epoch), int(offset))
            case ["truncate-end", offset]:
                epochs.truncate_from_end(int(offset))
            case ["truncate-start", offset]:
                epochs.truncate_from_start(int(offset))
            case ["end-offset", epoch, end]:
                answer = "{} {}".format(*epochs.end_offset_for(int(epoch), int(end)))
            case ["epoch-for", offset]:
                found = epochs.epoch_for(int(offset))
                answer = str(-1 if found is None else found)
            case ["neighbours", epoch]:
                pair = (epochs.previous_epoch(int(epoch)), epochs.next_epoch(int(epoch)))
                answer = " ".join(str(-1 if other is None else other) for other in pair)
            case _:
                raise ValueError(line)
        output.append(f"{line} => {answer} | " + " ".join(f"{epoch}@{start}" for epoch, start in epochs.entries))
    return output


def random_epoch_script(random: Random, steps: int = 40) -> list[str]:
    """Mostly rising epochs and offsets, with some falling ones, truncations and queries."""
    lines = ["new"]
    epoch = offset = 0
    for _ in range(steps):
        dice = random.random()
        if dice < 0.45:
            epoch = max(0, epoch + random.choice([0, 1, 1, 1, 2, -1, -2]))
            offset = max(0, offset + random.choice([0, 0, 1, 3, 10, -2, -8]))
            lines.append(f"assign {epoch} {offset}")
        elif dice < 0.55:
            lines.append(f"truncate-end {offset + random.randint(-12, 3)}")
        elif dice < 0.65:
            lines.append(f"truncate-start {max(0, offset + random.randint(-20, 3))}")
        elif dice < 0.8:
            lines.append(f"end-offset {epoch + random.randint(-6, 2)} {offset + 5}")
        elif dice < 0.9:
            lines.append(f"epoch-for {max(0, offset + random.randint(-20, 5))}")
        else:
            lines.append(f"neighbours {max(0, epoch + random.randint(-4, 2))}")
    return lines
