"""Recordings as pages that play by themselves."""
