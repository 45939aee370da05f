"""The `groups` verb: groups, their offsets and lag, and how to change them."""
