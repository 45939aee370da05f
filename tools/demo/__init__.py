"""`make demo`: the main job end to end. `python -m tools.demo` runs it."""
