"""The world as it is: the one room of floors 0–3 that touches the operating system."""
