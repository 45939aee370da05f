"""The repository: what its documents promise, and what it must not contain."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "src" / "ottla" / "wire" / "messages"
"""Message classes written by tools/generate_messages.py."""

PYTHON_ROOTS = ("src", "tests", "tools", "bench")
TEXT_SUFFIXES = {".py", ".pyi", ".pxd", ".md", ".toml", ".txt", ".java", ".cfg", ".yml", ".yaml", ""}
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:work|root|home|Users|mnt(?!/shared/config\b))/\w")
"""/mnt/shared/config is where images of Kafka look for mounted files."""


def python_files(*roots: str) -> Iterator[Path]:
    for root in roots:
        yield from sorted((ROOT / root).rglob("*.py"))


def text_files() -> Iterator[Path]:
    """Every file that a commit would hold, found without asking git."""
    yield from (path for path in sorted(ROOT.iterdir()) if path.is_file() and path.name != ".git")  # a file in a worktree
    for folder in (*PYTHON_ROOTS, "docs", "image", ".ci"):
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def source_files() -> set[str]:
    """The hand-written files of src/ottla, relative to it."""
    package = ROOT / "src" / "ottla"
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if not path.name.startswith("__") and GENERATED not in path.parents
    }


def test_every_source_file_has_a_docstring() -> None:
    silent = [
        str(path.relative_to(ROOT)) for path in python_files("src") if not ast.get_docstring(ast.parse(path.read_bytes()))
    ]
    assert silent == [], "begin these files with a docstring"


def test_files_that_design_names_exist() -> None:
    files = [f"/{source}" for source in source_files()]
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "DESIGN.md").read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []


def test_readme_names_the_make_targets() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    assert readme.count("<!-- figures:begin -->") == readme.count("<!-- figures:end -->") == 1


def test_examples_in_the_readme_work() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    assert examples
    for example in examples:
        if "spark." in example:
            continue  # tests/spark/test_readme.py runs it in a session
        exec(compile(example, "README.md", "exec"), {})


def test_links_between_documents_are_not_broken() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").glob("*.md")]
    broken = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
        if not (document.parent / target).exists()
    ]
    assert broken == []


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def test_decisions_are_numbered_without_gaps_and_listed() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert DECISIONS
    for number, path in enumerate(DECISIONS, start=1):
        text = path.read_text(encoding="utf-8")
        assert re.fullmatch(rf"{number:04d}-[a-z0-9-]+\.md", path.name)
        title = re.match(rf"# {number}\. (.+)", text)
        assert title, f"{path.name} does not begin with its number"
        assert f"- [{number:04d}]({path.name}) {title[1]}\n" in index, f"{path.name} is not in the index"
        sections = re.findall(r"^## (\w+)", text, flags=re.MULTILINE)
        assert [sections[0], sections[-1]] == ["Context", "Figure"], path.name
        assert len(text.splitlines()) <= 75, f"{path.name} is longer than a page"


def test_decisions_that_are_named_exist() -> None:
    names = {path.stem for path in DECISIONS}
    numbers = {name[:4] for name in names}
    dangling = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in text_files()
        if path.suffix in TEXT_SUFFIXES and path.resolve() != Path(__file__).resolve()
        for found in re.finditer(r"[dD]ecisions?[ /](\d{4})(-[\w-]+)?", path.read_text(encoding="utf-8", errors="replace"))
        if found[1] not in numbers or (found[2] and found[0].rpartition("/")[2] not in names)
    ]
    assert dangling == []


def test_files_contain_no_paths_of_a_developers_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in text_files()
        if path.suffix in TEXT_SUFFIXES and path.resolve() != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_machine_paths_are_recognised() -> None:
    assert MACHINE_PATH.search("see /home/someone/notes")
    assert MACHINE_PATH.search("see /mnt/disk/notes")
    assert not MACHINE_PATH.search("/mnt/shared/config/server.properties")
    assert not MACHINE_PATH.search("~/.cache/home/x and $HOME/work/x")
