"""Arrays, whatever they mean: checks, columns, rotations, bytes. Knows no scene."""
