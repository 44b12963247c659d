"""The footbridge on four workers, blended and coupled tightly: tight coupling gives what one worker gives."""

import numpy as np

import lapjoint

scene = lapjoint.scenes.build("bridge")
gaps, states = {}, {}
runs = {"one worker": {"workers": 1}, "blend": {"workers": 4, "coupling": "blend"}, "tight": {"workers": 4}}
for name, options in runs.items():
    with lapjoint.Simulation(scene, lapjoint.Params.from_options(precision="float64", **options)) as simulation:
        simulation.step(100)
        gaps[name], states[name] = simulation.joints.gaps().max(), simulation.states
        print(f"{name}: largest joint gap {1e3 * gaps[name]:.2g} mm")
        if name == "tight":
            print(f"       {simulation.profile.exchanges} exchanges a step between two workers")
            print(f"       {len(simulation.workers.interface)} of {scene.body_count} bodies are at an interface")
            assert simulation.params.coupling == "tight", "that is what auto takes for several workers"

errors = {name: np.abs(states[name] - states["one worker"])[:, :3].max() for name in ("blend", "tight")}
print(*(f"{name}: {1e3 * error:.3g} mm from one worker" for name, error in errors.items()), sep="\n")
assert errors["tight"] < 1e-3 * errors["blend"]
assert gaps["tight"] < gaps["blend"]
