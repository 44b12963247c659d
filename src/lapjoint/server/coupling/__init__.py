"""Couplings: how workers' results become one."""
