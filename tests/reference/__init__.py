"""Readable twins of native code that no run takes: tests compare the two. Those that `--algorithms reference` runs are
in src/lapjoint/algorithms/."""
