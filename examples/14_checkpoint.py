"""A run resumed from a checkpoint has the bits of the uninterrupted one, or goes on with another number of workers."""

import tempfile

import lapjoint

scene = lapjoint.scenes.build("bowl", 200)
with tempfile.TemporaryDirectory() as folder:
    with lapjoint.Simulation(scene, lapjoint.Params(workers=2)) as simulation:
        writer = lapjoint.CheckpointWriter(folder, simulation, every=100)
        simulation.on_step(writer.after_step)
        simulation.step(200)
        whole = simulation.state_hash
        print(f"uninterrupted: {whole} after {simulation.step_count} steps")

    half = min(path for path in writer.path.iterdir() if "000000100" in path.name)
    checkpoint = lapjoint.Checkpoint(half)
    print(f"checkpoint of step {checkpoint.step_count}, written by lapjoint {checkpoint.versions['lapjoint']}")
    with checkpoint.resume() as simulation:
        simulation.step(100)
        print(f"resumed:       {simulation.state_hash} after {simulation.step_count} steps")
        assert simulation.state_hash == whole, "the same bits"

    with checkpoint.resume(workers=3) as simulation:
        simulation.step(100)
        print(f"on 3 workers:  {simulation.state_hash}, other rounding, the same scene")
        assert simulation.params.workers == 3
        assert simulation.states[:, 2].min() > -0.1
