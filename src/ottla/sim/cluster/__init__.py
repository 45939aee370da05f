"""Several nodes in one simulated run: machines, a network between them, faults, and checkers that look into the nodes."""
