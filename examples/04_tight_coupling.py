"""The footbridge on four workers, coupled tightly: a step takes as many rounds as it needs for a residual of 1 mm/s."""

import lapjoint

scene = lapjoint.scenes.build("bridge")
gaps, rounds = {}, []
for coupling, options in {"blend": {}, "tight": {"rounds": 20, "tolerance": 1e-3}}.items():
    params = lapjoint.Params(workers=4, coupling=coupling, iterations=200, precision="float64", **options)
    with lapjoint.Simulation(scene, params) as simulation:
        for _ in simulation.frames(100):
            rounds.append(simulation.profile.rounds)
        gaps[coupling] = simulation.joint_gaps().max()
        print(f"{coupling}: largest joint gap {1e3 * gaps[coupling]:.3f} mm")
        if coupling == "tight":
            print(f"       {sum(rounds) / 100:.1f} rounds a step, residual {simulation.profile.residual:.1e} m/s")
            print(f"       {len(simulation.interface)} of {scene.body_count} bodies are at an interface")
            assert simulation.profile.residual < params.tolerance
assert gaps["tight"] < gaps["blend"]
assert sum(rounds) < 20 * 100, "the tolerance should have ended rounds"
