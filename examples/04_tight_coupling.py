"""The footbridge on four workers, coupled tightly: a step takes as many rounds as it needs for a residual of 1 mm/s."""

import lapjoint

scene = lapjoint.scenes.build("bridge")
gaps = {}
for coupling in ("blend", "tight"):
    params = lapjoint.Params(workers=4, coupling=coupling, iterations=200, rounds=20, tolerance=1e-3)
    with lapjoint.Simulation(scene, params) as simulation:
        simulation.step(100)
        gaps[coupling] = simulation.joint_gaps().max()
        print(f"{coupling}: largest joint gap {1e3 * gaps[coupling]:.2f} mm")
        if coupling == "tight":
            profile = simulation.profile
            print(
                f"       {profile.rounds} rounds in the last step, residual {profile.residual:.1e} m/s, "
                f"{len(simulation.interface)} interface bodies"
            )
assert gaps["tight"] < gaps["blend"]
