"""An engine of one's own, balls on springs in 150 lines of NumPy (spring_engine/), beside Bullet in one scene: two
workers with an engine each share a pile of balls, and blend what they find."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import lapjoint

# What `pip install ./examples/spring_engine` does for good, for this program alone: the module and its entry point.
folder = tempfile.TemporaryDirectory()
info = Path(folder.name) / "spring_engine-0.1.0.dist-info"
info.mkdir()
(info / "METADATA").write_text("Metadata-Version: 2.1\nName: spring-engine\nVersion: 0.1.0\n")
(info / "entry_points.txt").write_text("[lapjoint.engines]\nsprings = spring_engine:SpringEngine\n")
sys.path += [str(Path(__file__).with_name("spring_engine")), folder.name]
print("engines:", *lapjoint.engine_names())

scene = lapjoint.Scene("balls", timestep=0.002)
scene.add_static(lapjoint.Plane())
places = np.indices((4, 2, 3)).reshape(3, -1).T * 0.52 + (0, 0, 0.3)
scene.add_bodies(lapjoint.Sphere(0.25), places)

for engine in ("bullet:float64", "springs:float64", "bullet:float64,1=springs:float64"):
    params = lapjoint.Params(workers=2, engine=engine, coupling="blend", solver="sequential", runtime="inline")
    with lapjoint.Simulation(scene, params) as simulation:
        simulation.step(200)
        heights = simulation.states[:, 2]
        print(f"{engine:34} lowest ball at {heights.min():.4f} m, {simulation.profile.overlap_count} overlap bodies")
        assert 0.2 < heights.min() < 0.26, "the lowest balls lie on the ground"
        assert heights.max() < 2.0
folder.cleanup()
