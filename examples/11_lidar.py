"""A lidar turns beside a heap that three workers simulate: a fan of rays every few steps, and a picture of all points
that it has seen, coloured by their distance from it (`11_lidar.py lidar.png` keeps the picture)."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import lapjoint
from lapjoint.view import picture

PATH = Path(sys.argv[1] if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "lidar.png")
EYE, BEAMS, TURNS, RANGE = np.array([0.0, -7.0, 3.0]), 96, 480, 25.0

scene = lapjoint.Scene("heap", timestep=0.005)
scene.camera = ((8, -14, 9), (0, -0.5, 0.5))
scene.add_static(lapjoint.Plane())
scene.add_static(lapjoint.Box((14.0, 0.2, 3.0)), (0, 6, 1.5))
shapes = [
    lapjoint.Box((0.7, 0.5, 0.4)),
    lapjoint.Sphere(0.3),
    lapjoint.Cylinder(0.25, 0.8),
    lapjoint.Capsule(0.2, 0.5),
]
places = np.indices((6, 6, 14)).reshape(3, -1).T * 0.92 + (-2.3, -2.3, 0.5)
turns = np.random.default_rng(0).normal(size=(len(places), 4))
turns /= np.linalg.norm(turns, axis=1)[:, None]
scene.add_bodies([shapes[k % 4] for k in range(len(places))], places, turns)

points, distances, seen_of = [], [], np.zeros(3, bool)
with lapjoint.Simulation(scene, lapjoint.Params(workers=3)) as simulation:
    simulation.step(500)  # the tower becomes a heap
    for azimuth in np.linspace(-np.pi, np.pi, TURNS, endpoint=False).reshape(40, -1):
        down = np.linspace(-1.2, 0.25, BEAMS)
        around, up = (grid.ravel() for grid in np.meshgrid(azimuth, down))
        fan = np.stack([np.sin(around) * np.cos(up), np.cos(around) * np.cos(up), np.sin(up)], axis=1)
        hits = simulation.queries.cast_rays(EYE, fan, RANGE)
        seen = hits.is_hit
        points.append(hits.point[seen])
        distances.append(hits.distance[seen])
        # Every hit is on a surface, and nothing is nearer along the ray.
        near = simulation.queries.closest_points(hits.point[seen])
        assert np.abs(near.distance).max(initial=0.0) < 1e-6
        assert not simulation.queries.cast_rays(EYE, fan, np.minimum(RANGE, hits.distance) * (1 - 1e-9)).is_hit.any()
        bodies = hits.body[hits.body >= 0]
        seen_of |= [simulation.workers.membership.column(worker)[bodies].any() for worker in range(3)]
        simulation.step(2)

cloud, distance = np.concatenate(points), np.concatenate(distances)
share = np.clip(distance / 16, 0, 1)[:, None]
colors = np.concatenate([1 - share, 1 - np.abs(2 * share - 1), share], axis=1) * 0.85 + 0.1
drawn = lapjoint.Scene("points")
drawn.add_bodies(lapjoint.Sphere(0.03), cloud)
picture(drawn, PATH, colors=colors, camera=scene.camera)
print(f"{len(cloud):,} points from {distance.min():.2f} to {distance.max():.2f} m in {PATH}")
assert seen_of.all(), "it has seen bodies of all three workers"
assert len(cloud) > 20_000
