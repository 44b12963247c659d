"""Scenes, recordings and running simulations in browsers."""
