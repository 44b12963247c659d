"""Pictures and films of scenes and recordings, without a screen."""
