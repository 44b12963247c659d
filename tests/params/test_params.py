"""Numbers that stand alone - materials, motors, springs, parameters - are checked where they are made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lapjoint import (
    Ball,
    Blend,
    Failures,
    LapjointError,
    Material,
    Motor,
    Params,
    Scene,
    Sequential,
    Simulation,
    Sleep,
    Sphere,
    Spring,
    Units,
    make_engine,
)
from lapjoint.params.params import typical_length

NAN = np.nan
"""Of the substep solver; files of runs before it do not have them."""

NUMBER_MISTAKES: dict[str, Callable[[], object]] = {
    "Material: friction": lambda: Material(friction=-1.0),
    "Material: restitution": lambda: Material(restitution=1.1),
    "Material: rolling_friction": lambda: Material(rolling_friction=NAN),
    "Material: linear_damping": lambda: Material(linear_damping="much"),  # type: ignore[arg-type]
    "Motor: velocity": lambda: Motor(NAN, 1.0),
    "Motor: max_force": lambda: Motor(1.0, 0.0),
    "Spring: stiffness": lambda: Spring(0.0),
    "Spring: damping": lambda: Spring(1.0, -1.0),
    "Spring: rest": lambda: Spring(1.0, 0.0, "soft"),  # type: ignore[arg-type]
    "name is 5": lambda: Scene(5),  # type: ignore[arg-type]
    "gravity is (0, 0)": lambda: Scene(gravity=(0, 0)),
    "gravity is nan": lambda: Scene(gravity=NAN),
    "timestep is 0": lambda: Scene(timestep=0),
    "timestep is soon": lambda: Scene(timestep="soon"),  # type: ignore[arg-type]
    "iterations is 0": lambda: Scene(iterations=0),
    "iterations is 1.5": lambda: Scene(iterations=1.5),  # type: ignore[arg-type]
    "growth_depth is -1": lambda: Scene(growth_depth=-1),
    "search_depth is -1": lambda: Scene(search_depth=-1),
    "iterations is 2.5": lambda: Params(sequential=Sequential(iterations=2.5)),  # type: ignore[arg-type]
    "iterations is 0, expected 1": lambda: Params(sequential=Sequential(iterations=0)),
    "timestep is -1": lambda: Params(timestep=-1.0),
    "growth_depth is of blend: Params(blend=Blend(growth_depth=3))": lambda: Params(growth_depth=3),  # type: ignore[call-arg]
    "length_unit is of units: Params(units=Units(length=2.0))": lambda: Params(length_unit=2.0),  # type: ignore[call-arg]
    "substeps is 8, expected Substeps, as in Substeps(count=8)": lambda: Params(substeps=8),  # type: ignore[arg-type]
    "blend is {'growth_depth': 3}, expected Blend": lambda: Params(blend={"growth_depth": 3}),  # type: ignore[arg-type]
    "no parameter named 'growth'; known parameters: growth_depth, search": lambda: Blend(growth=3),  # type: ignore[call-arg]
    "sleep_after is -1": lambda: Params(sleep=Sleep(after=-1.0)),
    "length_unit is long": lambda: Params(units=Units(length="long")),  # type: ignore[arg-type]
    "precision is 'float16'": lambda: Params(precision="float16"),
    "joint_erp is nan": lambda: Params(sequential=Sequential(joint_erp=NAN)),
    "joint_erp is 2": lambda: Params(sequential=Sequential(joint_erp=2.0)),
    "no parameter named 'speed'; known parameters: ": lambda: Params.from_options(speed=1.0),
    "no parameter named 'iteration' (did you mean 'iterations'?); known parameters: ": lambda: Params(iteration=1),  # type: ignore[call-arg]
    "no engine named 'bulet' (did you mean 'bullet'?)": lambda: make_engine(Scene(), Params(engine="bulet")),
    "no engine named 'warp'; known engines: bullet": lambda: make_engine(Scene(), Params(engine="warp")),
}


@pytest.mark.parametrize("message", NUMBER_MISTAKES)
def test_a_wrong_number_is_refused_by_name(message: str) -> None:
    with pytest.raises(LapjointError) as caught:
        NUMBER_MISTAKES[message]()
    assert message in str(caught.value)


def test_the_length_unit_is_a_power_of_two_near_the_typical_body() -> None:
    scene = Scene()
    assert typical_length(scene) == 1.0
    scene.add_bodies([Sphere(0.1), Sphere(0.1), Sphere(50.0)], np.eye(3) * 200)
    assert typical_length(scene) == 0.25
    assert Params().resolved(scene).units.length == 0.25
    assert Params(units=Units(length=3.0)).resolved(scene).units.length == 3.0


# ---- coupling ----------------------------------------------------------------------------------------------------


def row(count: int, jointed: bool = False) -> Scene:
    """Balls in a row, a ball joint between neighbours if they are jointed."""
    scene = Scene("row")
    scene.add_bodies(Sphere(0.4), [(float(k), 0.0, 0.0) for k in range(count)])
    for k in range(count - 1) if jointed else ():
        scene.add_joint(Ball(), k, k + 1, (k + 0.5, 0.0, 0.0))
    return scene


@pytest.mark.parametrize(
    ("jointed", "given", "coupling", "reason"),
    [
        (True, {"workers": 2}, "tight", None),
        (True, {"workers": 1, "max_workers": 2}, "tight", None),
        (True, {}, "blend", "one worker has nothing to couple"),
        (False, {"workers": 2}, "tight", None),
        (False, {"workers": 2, "solver": "substeps", "substeps": 8}, "tight", None),
        (False, {"workers": 2, "engine": "bullet:float64"}, "tight", None),
        (False, {"workers": 2, "engine": "mujoco"}, "blend", "`engine` is given, with which only blend works"),
        (False, {"workers": 2, "engine": "bullet,1=mujoco"}, "blend", "`engine` is given, with which only blend works"),
        (True, {"workers": 2, "iterations": 9}, "blend", "`iterations` is given, with which only blend works"),
        (True, {"workers": 2, "solver": "sequential"}, "blend", "`solver` is given, with which only blend works"),
        (True, {"workers": 2, "growth_depth": 1}, "blend", "`growth_depth` is given, which only blend has"),
        (True, {"workers": 2, "weights": "computed"}, "blend", "`weights` is given, which only blend has"),
        (True, {"workers": 2, "solver": "dantzig"}, "blend", "`solver` is given, with which only blend works"),
        (True, {"workers": 2, "coupling": "blend"}, "blend", None),
    ],
)
def test_auto_chooses_a_coupling_and_says_why(
    jointed: bool, given: dict[str, Any], coupling: str, reason: str | None
) -> None:
    scene, params = row(4, jointed), Params.from_options(**given)
    assert params.resolved(scene).coupling == coupling
    assert params.coupling_reason(scene) == reason
    assert params.resolved(scene).resolved(scene) == params.resolved(scene), "resolving again changes nothing"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"coupling": "tight", "linger": 3}, "`linger` is given, but the coupling is tight, which has no overlap"),
        ({"coupling": "tight", "growth_depth": 9}, "`growth_depth` is given, but the coupling is tight"),
    ],
)
def test_an_option_of_the_other_coupling_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        Simulation(row(4), Params.from_options(workers=2, runtime="inline", **given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"iterations": 9}, "coupling is tight and solver is sequential, expected substeps"),
        ({"solver": "sequential"}, "coupling is tight and solver is sequential, expected substeps"),
        ({"solver": "substeps,1=dantzig"}, "coupling is tight and solver is dantzig, expected substeps"),
    ],
)
def test_tight_coupling_is_of_the_substep_solver_alone(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        Simulation(row(4), Params.from_options(workers=2, runtime="inline", coupling="tight", **given))


# ---- solver ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "solver", "reason"),
    [
        ({}, "substeps", None),
        ({"substeps": 8, "joints": "direct"}, "substeps", None),
        ({"workers": 2, "coupling": "blend"}, "substeps", None),
        ({"workers": 2, "substeps": 8}, "substeps", None),
        ({"iterations": 7}, "sequential", "`iterations` is given, which only sequential has"),
        ({"iterations": 50}, "sequential", "`iterations` is given, which only sequential has"),
        ({"contact_erp": 0.2}, "sequential", "`contact_erp` is given, which only sequential has"),
        ({"sleep": True}, "substeps", None),
        ({"engine": "mujoco"}, "sequential", "`engine` is given, with which only sequential works"),
        ({"engine": "bullet,1=mujoco", "workers": 2}, "sequential", "`engine` is given, with which only sequential w"),
        ({"coupling": "tight"}, "substeps", None),
        ({"workers": 2}, "substeps", None),
        ({"workers": 2, "coupling": "tight", "substeps": 8}, "substeps", None),
        ({"solver": "sequential"}, "sequential", None),
        ({"solver": "sequential", "iterations": 7}, "sequential", None),
        ({"solver": "dantzig", "iterations": 7, "contact_erp": 0.2}, "dantzig", None),
        ({"solver": "substeps,1=dantzig", "workers": 2, "iterations": 7, "substeps": 8}, "substeps,1=dantzig", None),
    ],
)
def test_auto_chooses_a_solver_and_says_why(given: dict[str, Any], solver: str, reason: str | None) -> None:
    scene, params = row(4, jointed=True), Params.from_options(**given)
    assert scene.iterations == 50
    resolved = params.resolved(scene)
    assert resolved.solver == solver
    found = params.solver_reason(scene)
    assert found == reason or (found is not None and reason is not None and found.startswith(reason))
    assert resolved.resolved(scene) == resolved, "resolving again changes nothing"
    assert resolved.solver_reason(scene) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"solver": "substeps", "iterations": 7},
            "`iterations` is given, but the solver is substeps, expected sequential: leave `iterations` out, or take "
            "`solver` sequential",
        ),
        ({"solver": "substeps", "joint_erp": 0.5}, "`joint_erp` is given, but the solver is substeps, expected seq"),
        (
            {"solver": "sequential", "substeps": 8},
            "`substeps` is given, but the solver is sequential, expected substeps: leave `substeps` out, or take "
            "`solver` substeps",
        ),
        ({"solver": "dantzig", "joints": "swept"}, "`joints` is given, but the solver is dantzig, expected substeps"),
        (
            {"iterations": 7, "substeps": 8},
            r"`substeps` is given, but the solver is sequential, expected substeps \(`iterations` is given, which only "
            r"sequential has\): leave `substeps` out, or add `solver` substeps",
        ),
        ({"solver": "sequential", "sleep": True}, "sleep is on, which only the solver substeps has, and solver is seq"),
        ({"solver": "auto,1=dantzig"}, "cannot read 'auto', expected auto, substeps"),
        ({"substeps": 0}, "substeps is 0, expected 1 to 1000"),
        ({"joints": "both"}, "joints is 'both', expected one of auto, direct, swept"),
    ],
)
def test_an_option_of_the_other_solver_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        Simulation(row(4, jointed=True), Params.from_options(workers=2, runtime="inline", **given))


def test_the_substep_solver_has_no_iterations_to_set() -> None:
    message = "set_iterations: the solver is substeps, expected sequential: set `substeps` in"
    with Simulation(row(4), Params(runtime="inline")) as simulation, pytest.raises(LapjointError, match=message):
        simulation.workers.set_iterations(7)


# ---- a partition as an array -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [np.array([1, 0, 0, 1]), [1, 0, 0, 1], (1, 0, 0, 1), np.array([1, 0, 0, 1], np.uint8)]
)
def test_a_partition_may_be_an_array(given: Any) -> None:
    params = Params(workers=2, runtime="inline", partition=given)
    assert params == Params(workers=2, runtime="inline", partition=[1, 0, 0, 1])
    assert params != replace(params, partition="metis")
    assert hash(params) == hash(replace(params, workers=2))
    assert Params.from_options(**json.loads(json.dumps(params.options()))) == params, (
        "as recordings and checkpoints keep it"
    )
    assert (params.partition_name, replace(params, partition="equal").partition_name) == ("array", "equal")
    with Simulation(row(4), params) as simulation:
        assert simulation.workers.weights().argmax(axis=1).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((2, 2), int), r"partition has shape \(2, 2\), expected auto, labels"),
        ([0.0, 1.0], "partition is an array of float64, expected whole numbers"),
        ([True, False], "partition is an array of bool, expected whole numbers"),
        ([[0], [1, 1]], r"partition is \[\[0\], \[1, 1\]\], expected auto"),
        (3, "partition is 3, expected auto"),
        ([0, 1, 1], "partition: 3 numbers for 4 bodies, expected one per body"),
        ([0, 1, -1, 1], "partition: body 2 .*goes to worker -1, expected 0 to 1"),
        ([0, 1, 2, 1], "partition: body 2 .*goes to worker 2, expected 0 to 1"),
        ([0, 0, 0, 0], "partition: is a partition for 1 worker, but workers is 2, expected 1"),
    ],
)
def test_an_array_that_is_no_partition_is_refused(given: Any, message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        Simulation(row(4), Params(workers=2, runtime="inline", partition=given))


def test_a_partition_for_another_number_of_workers_is_refused() -> None:
    with pytest.raises(LapjointError, match="is a partition for 2 workers, but workers is 4, expected 2"):
        Simulation(row(4), Params(workers=4, runtime="inline", partition=[0, 1, 0, 1]))


def test_numbers_of_numpy_become_plain_ones() -> None:
    params = Params(workers=np.int64(2), timestep=np.float32(0.25), failures=Failures(quarantine=np.bool_(True)))
    assert params == Params(workers=2, timestep=0.25, failures=Failures(quarantine=True))
    assert json.loads(json.dumps(params.options()))["workers"] == 2, (
        "as workers in processes of their own are sent them"
    )


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_what_is_true_or_false_is_nothing_else(value: Any) -> None:
    with pytest.raises(LapjointError, match=f"sleep is {value!r}, expected True or False"):
        Params(sleep=value)
