"""What the tests of films and exported pages share: a small recording in which things move and change hands."""

from __future__ import annotations

from pathlib import Path

from lapjoint import Box, Params, Plane, Recording, RecordingWriter, Scene, Simulation, Sphere


def falling() -> Scene:
    """Boxes and balls in two rows, dropped onto the ground."""
    scene = Scene("falling <b>")
    scene.add_static(Plane())
    scene.add_static(Box((0.5, 4.0, 0.5)), (2.5, 0.0, 0.25))
    for i in range(6):
        shape = Box((0.6, 0.6, 0.6)) if i % 2 else Sphere(0.3)
        scene.add_body(shape, (-1.5 + 0.62 * i, 0.0, 1.5 + 0.2 * i), name=f"body {i}", label=i // 3)
    return scene


def record_falling(path: Path, steps: int = 300, every: int = 5, workers: int = 2, contacts: bool = True) -> Recording:
    """A frame every 10 ms, for 0.6 s."""
    params = Params(workers=workers, runtime="inline", coupling="blend")
    with (
        Simulation(falling(), params) as simulation,
        RecordingWriter(path, simulation, every=every, contacts=contacts) as writer,
    ):
        for _ in range(steps):
            simulation.step()
            writer.add(simulation)
    return Recording(path)
