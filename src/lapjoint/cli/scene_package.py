"""What `lapjoint new scene` writes: a package of one module with a scene, and its test."""

from __future__ import annotations

_PROJECT = """\
[build-system]
requires = ["setuptools>=69"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
description = "A scene for lapjoint"
requires-python = ">=3.11"
dependencies = ["lapjoint"]

# The name for `lapjoint run`, and the function that builds the scene.
[project.entry-points."lapjoint.scenes"]
{name} = "{module}:build"

[tool.setuptools]
py-modules = ["{module}"]
"""

_SCENE = '''\
"""The scene {name}."""

from __future__ import annotations

import lapjoint

BOX = (1.0, 1.0, 0.5)  # sides, in metres
ROUGH = lapjoint.Material(friction=0.7)


def build(size: int | None = None, seed: int = 0) -> lapjoint.Scene:
    """A tower of boxes, and a ball that is thrown at it.

    The first line above is what `lapjoint scenes` shows. `size` is what --size gives: about how many bodies, or None
    for as many as suit the scene. `seed` is for scenes with chance in them; this one has none.
    """
    levels = 20 if size is None else max(size - 1, 1)
    scene = lapjoint.Scene("{name}")
    scene.add_static(lapjoint.Plane(), material=ROUGH)
    for level in range(levels):
        place = (0.0, 0.0, (level + 0.5) * BOX[2])
        # Labels number a scene's natural pieces; workers get neighbouring ones.
        scene.add_body(lapjoint.Box(BOX), place, density=500.0, label=level, material=ROUGH)
    top = levels * BOX[2]
    scene.add_body(
        lapjoint.Sphere(0.5), (-8.0, 0.0, 0.6 * top + 1.0), linear_velocity=(20.0, 0.0, 0.0), mass=2000.0, name="ball"
    )
    scene.camera = (0.8 * top, -1.5 * top - 10.0, 0.8 * top), (0.0, 0.0, 0.4 * top)  # from where, at what
    return scene
'''

_TEST = '''\
"""The scene {name}: its counts, how it starts, and what happens in it."""

from __future__ import annotations

import lapjoint


def test_it_has_as_many_bodies_as_asked_for() -> None:
    assert lapjoint.scenes.build("{name}").body_count == 21
    assert lapjoint.scenes.build("{name}", size=6).body_count == 6


def test_the_ball_pushes_the_top_off_the_tower_on_two_workers() -> None:
    scene = lapjoint.scenes.build("{name}", size=9)
    with lapjoint.Simulation(scene, lapjoint.Params(workers=2)) as simulation:
        simulation.step(400)
        x, speed = simulation.states[:, 0], simulation.states[:, 7]
    assert x[7] > 1.0, "the uppermost box is no longer above the lowest"
    assert 0.0 < speed[8] < 20.0, "and the ball is slower than it was"
'''

_README = """\
# {name}

A scene for lapjoint.

```
pip install --editable .
lapjoint run {name} --workers 2 --picture {name}.png
lapjoint run {name} --workers 2 --view
pytest
```

`{module}.py` builds it, `test_{module}.py` tests it. How scenes are found, and what `build` may do:
docs/own-scenes.md of lapjoint.
"""


def scene_package(name: str, module: str) -> dict[str, str]:
    """The files of the package, by their names."""
    files = {
        "README.md": _README,
        "pyproject.toml": _PROJECT,
        f"{module}.py": _SCENE,
        f"test_{module}.py": _TEST,
    }
    return {file: text.format(name=name, module=module) for file, text in files.items()}
