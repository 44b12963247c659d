"""The server: what it decides before a step, and what it makes of the workers' results (`coupling`)."""
