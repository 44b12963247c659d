"""The footbridge on two workers: the joint gap falls as the overlap grows (Figure 6 of the paper)."""

import lapjoint

scene = lapjoint.scenes.build("bridge")
gaps = {}
for growth_depth in (0, 3):
    params = lapjoint.Params(
        workers=2, blend=lapjoint.Blend(growth_depth=growth_depth), sequential=lapjoint.Sequential(iterations=200)
    )
    with lapjoint.Simulation(scene, params) as simulation:
        simulation.step(100)
        gaps[growth_depth] = simulation.joints.gaps().sum()
        print(
            f"growth depth {growth_depth}: {simulation.profile.overlap_count} overlap bodies, "
            f"joint gaps {1e3 * gaps[growth_depth]:.1f} mm in all"
        )
assert gaps[3] < gaps[0]
