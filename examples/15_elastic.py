"""Workers come and go while a run goes on: two, four, one, two. No body is lost and no state jumps; bodies migrate
with their contact caches. `max_workers=` lets the load decide."""

import numpy as np

import lapjoint

scene = lapjoint.scenes.build("pyramid", 12)
with lapjoint.Simulation(scene, lapjoint.Params(workers=2)) as simulation:
    simulation.step(60)
    for count in (4, 1, 2):
        before = simulation.states
        simulation.workers.set_count(count)
        simulation.step(20)
        moved = np.abs(simulation.states - before)[:, :3].max()
        active = [int(simulation.workers.membership.column(worker).sum()) for worker in range(count)]
        print(f"{count} workers have {active} bodies; none moved by more than {1e3 * moved:.3f} mm in 20 steps")
        assert sum(active) == scene.body_count
        assert moved < 1e-3, "the pyramid stands"
    for incident in simulation.incidents:
        print(incident)
    assert [incident.kind for incident in simulation.incidents] == ["workers"] * 3
