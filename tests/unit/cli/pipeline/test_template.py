"""The files that `init` writes."""

from pathlib import Path

from ottla.cli.pipeline.command import files_of
from ottla.cli.pipeline.test import read_cases


def test_python_files_compile_and_tests_can_be_read(tmp_path: Path) -> None:
    for name, text in files_of("shop", tmp_path, "h:1").items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".py":
            compile(text, name, "exec")
    (case,) = read_cases(tmp_path)
    assert (list(case.given), list(case.expected)) == (["orders"], ["large-orders", "orders-dead"])
