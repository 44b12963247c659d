"""Workers: one engine each, the messages they understand, and where they live (`runtimes`)."""
