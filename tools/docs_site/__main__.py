"""`make docs`: builds the documentation site in build/site, without a network, and checks every link in it.

python -m tools.docs_site            build and check
python -m tools.docs_site --serve    then serve it on 127.0.0.1:8000

The pages are copied to build/site-source with their links rewritten (pages.py), the reference is written from docstrings
(reference.py), Zensical makes HTML of both, and the HTML is checked: every link and anchor exists, and nothing is loaded from
another host (check.py). Zensical, and not mkdocs-material, because the makers of both ended the latter's maintenance in 2026
and named Zensical as its successor.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Before anything of Ottla's is imported: this checkout's, and as pure Python, for compiled classes have no signatures.
os.environ["OTTLA_PURE"] = "1"
sys.path.insert(0, str(ROOT / "src"))

from tools.docs_site.check import problems_of  # noqa: E402
from tools.docs_site.pages import CONFIG_NAME, SITE_FOLDER, SOURCE_FOLDER, write_source  # noqa: E402

THEMES_SHIM, WORKER = "https://unpkg.com/iframe-worker/shim", "file_worker.js"


def build(target: Path) -> list[str]:
    """Build the site below `target`; returns what is wrong with it, one sentence a line."""
    for name in (SOURCE_FOLDER, SITE_FOLDER):
        shutil.rmtree(target / name, ignore_errors=True)
    write_source(ROOT, target)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--config-file", str(target / CONFIG_NAME)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        return [f"zensical ended with exit code {done.returncode}:", *done.stdout.splitlines()]
    shutil.rmtree(target / ".cache", ignore_errors=True)
    replace_shim(target / SITE_FOLDER)
    return problems_of(target / SITE_FOLDER)


def replace_shim(site: Path) -> None:
    """Where pages are opened as files, the theme fetches a script from another host to search with. Ours takes its place."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        own = os.path.relpath(site / WORKER, page.parent)
        page.write_text(text.replace(THEMES_SHIM, own), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--serve", action="store_true", help="serve the site on 127.0.0.1 until Ctrl-C")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--target", type=Path, default=ROOT / "build", help="the folder to build in (build)")
    options = parser.parse_args()
    options.target.mkdir(parents=True, exist_ok=True)
    problems = build(options.target.resolve())
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(f"the site has {len(problems)} problems")
    site = options.target / SITE_FOLDER
    print(f"{sum(1 for _ in site.rglob('*.html'))} pages in {site}: open {site / 'index.html'}, or serve them with --serve")
    if options.serve:
        handler = partial(SimpleHTTPRequestHandler, directory=str(site))
        with ThreadingHTTPServer(("127.0.0.1", options.port), handler) as server:
            print(f"http://127.0.0.1:{options.port}/  (Ctrl-C ends it)", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print()


if __name__ == "__main__":
    main()
