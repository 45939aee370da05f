"""What Burrow says of the histories in `tests/support/cases/lag_histories.py`: asks its own evaluator, compiled by Go.

    python tools/burrow_oracle.py --source DIR     with a checkout of https://github.com/linkedin/Burrow
    python tools/burrow_oracle.py                  clones it first
    … --write                                      record the answers in tests/support/recorded/burrow_statuses.json

Without `--write` the recorded answers are compared: exit code 1 if one differs. Needs git, Go and Go's registry. The checkout
is copied, with a Go test of ours added that prints the answers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.support.cases.lag_histories import HISTORIES, NOW_MS  # noqa: E402

from ottla.client_core.lag import WINDOW  # noqa: E402

REPOSITORY = "https://github.com/linkedin/Burrow"
VERSION = "v1.9.5"
RECORDED = ROOT / "tests/support/recorded/burrow_statuses.json"
PROGRAM = """\
package evaluator

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/linkedin/Burrow/core/protocol"
)

type history struct {
	Name     string
	Commits  [][3]int64 // offset, age in ms, lag
	Ends     []int64
	Lag      uint64
	Allowed  uint64
	Complete float32
	Window   int
}

func TestHistories(t *testing.T) {
	text, _ := os.ReadFile(os.Getenv("HISTORIES"))
	var histories []history
	if err := json.Unmarshal(text, &histories); err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	now := time.Now().Unix() * 1000
	for _, each := range histories {
		offsets := make([]*protocol.ConsumerOffset, each.Window)
		first := each.Window - len(each.Commits)
		for number, commit := range each.Commits {
			offsets[first+number] = &protocol.ConsumerOffset{
				Offset: commit[0], Timestamp: now - commit[1], Lag: &protocol.Lag{Value: uint64(commit[2])},
			}
		}
		partition := &protocol.ConsumerPartition{Offsets: offsets, BrokerOffsets: each.Ends, CurrentLag: each.Lag}
		if len(each.Commits) == 0 {
			partition.Offsets = nil
		}
		answers[each.Name] = evaluatePartitionStatus(partition, each.Complete, each.Allowed).Status.String()
	}
	written, _ := json.Marshal(answers)
	os.WriteFile(os.Getenv("ANSWERS"), written, 0o644)
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", type=Path, help="a checkout of Burrow; cloned if not given")
    parser.add_argument("--write", action="store_true", help="record the answers")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = ask(Path(folder), flags.source)
    if flags.write:
        RECORDED.write_text(json.dumps({"burrow": VERSION, "statuses": found}, indent=1) + "\n")
        print(f"{len(found)} answers are recorded in {RECORDED.relative_to(ROOT)}")
        return 0
    recorded = json.loads(RECORDED.read_text())["statuses"]
    differing = {name: (recorded.get(name), each) for name, each in found.items() if recorded.get(name) != each}
    for name, (before, now) in differing.items():
        print(f"{name}: recorded {before}, Burrow says {now}")
    return 1 if differing else 0


def ask(folder: Path, source: Path | None) -> dict[str, str]:
    """Burrow's status of each history, by name."""
    burrow = folder / "burrow"
    if source is None:
        subprocess.run(["git", "clone", "-q", "--depth", "1", "--branch", VERSION, REPOSITORY, burrow], check=True)
    else:
        shutil.copytree(source, burrow)
    (burrow / "core/internal/evaluator/histories_test.go").write_text(PROGRAM)
    histories = folder / "histories.json"
    histories.write_text(
        json.dumps(
            [
                {
                    "Name": each.name,
                    "Commits": [(one.offset, NOW_MS - one.at_ms, one.lag) for one in each.commits],
                    "Ends": each.ends,
                    "Lag": each.lag,
                    "Allowed": each.limits.lag,
                    "Complete": each.limits.complete,
                    "Window": WINDOW,
                }
                for each in HISTORIES
            ]
        )
    )
    go = shutil.which("go") or "/usr/local/go/bin/go"
    answers = folder / "answers.json"
    environment = os.environ | {"HISTORIES": str(histories), "ANSWERS": str(answers), "CGO_ENABLED": "0"}
    command = [go, "test", "-count=1", "-run", "TestHistories", "./core/internal/evaluator/"]
    subprocess.run(command, cwd=burrow, env=environment, check=True, stdout=subprocess.DEVNULL)
    found: dict[str, str] = json.loads(answers.read_text())
    return found


if __name__ == "__main__":
    sys.exit(main())
