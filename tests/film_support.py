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


def record_changing(path: Path, steps: int = 60, every: int = 5) -> Recording:
    """Bodies come after 25, 35 and 45 steps of 2 ms, and bodies 0 and 1 go after 30 and 40."""
    with (
        Simulation(falling(), Params(workers=2, runtime="inline", coupling="tight")) as simulation,
        RecordingWriter(path, simulation, every=every, contacts=True) as writer,
    ):
        for step in range(steps):
            if step in (25, 35, 45):
                shape = Box((0.5, 0.5, 0.5)) if step == 35 else Sphere(0.25)
                simulation.bodies.add_one(shape, (0.05 * step - 2.0, -1.5, 0.6), name=f"later {step}", label=2)
            if step in (30, 40):
                simulation.bodies.remove([step // 10 - 3])
            simulation.step()
            writer.add(simulation)
    return Recording(path)


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
