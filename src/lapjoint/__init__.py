"""lapjoint: one rigid-body scene, simulated by many workers.

What `__init__.pyi` imports is imported when it is first named, so that a worker loads what a worker needs.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]  # beside what is imported
