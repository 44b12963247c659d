"""Recordings as single HTML files that play offline in any browser."""
