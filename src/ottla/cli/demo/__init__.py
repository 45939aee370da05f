"""`make demo`: the main job end to end. `python -m ottla.cli.demo` runs it."""
