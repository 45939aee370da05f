"""Parts of a node on a simulated disk, in virtual time."""
