"""The pure machines of the clients: events and time in, requests and deadlines out. No await, clock, thread or socket."""
