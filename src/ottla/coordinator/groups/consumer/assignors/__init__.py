"""Who is meant to hold what: pure functions of who is there, what they read and what they were meant to hold before."""
