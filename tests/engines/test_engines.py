"""Which engine a worker has, what engines refuse and leave out, engines that share a scene, plug-ins."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from inspect import isfunction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from engine_support import ENGINES
from lapjoint import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Capsule,
    Compound,
    Drive,
    EngineWarning,
    Fixed,
    Gear,
    Hinge,
    LapjointError,
    Motor,
    Params,
    Part,
    Plane,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    TriangleMesh,
    engine_names,
    make_engine,
    scenes,
)
from lapjoint.cli import app, main
from lapjoint.engines import Engine, Support, engine_version, registry, supports
from lapjoint.engines.bounds import Bounds
from lapjoint.engines.checked import CheckedEngine
from lapjoint.params.engine_choice import EngineChoice
from lapjoint.recording.origin import versions
from lapjoint.studies.bench import BenchPlan

RAPIER, MUJOCO = Params(engine="rapier"), Params(engine="mujoco:float64")


def installed(*names: str) -> None:
    for name in names:
        if engine_version(supports(name)) is None:
            pytest.skip(f"the engine {name} is not installed")


# ---- the choice --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rapier", [("rapier", "float32")] * 3),
        ("bullet:float64", [("bullet", "float64")] * 3),
        ("bullet,1=rapier", [("bullet", "float32"), ("rapier", "float32"), ("bullet", "float32")]),
        ("2=a:float64, 0=b,1=c", [("b", "float32"), ("c", "float32"), ("a", "float64")]),
    ],
)
def test_every_worker_has_the_engine_it_is_given(text: str, wanted: list[tuple[str, str]]) -> None:
    choice = EngineChoice.parse(text)
    choice.check_workers(3)
    assert [choice.of(worker, "float32") for worker in range(3)] == wanted


CHOICES = {
    "": "cannot read ''",
    "bullet,": "cannot read ''",
    "one=rapier": "cannot read 'one=rapier'",
    "-1=rapier": "cannot read '-1=rapier'",
    "bullet:double": "cannot read 'bullet:double'",
    "1=": "cannot read '1='",
    "bullet,rapier": "two engines for all workers",
    "0=bullet,0=rapier": "worker 0 is given two engines",
}


@pytest.mark.parametrize("text", CHOICES)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(LapjointError, match=re.escape(CHOICES[text])):
        Params(engine=text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bullet,2=bullet", "there is no worker 2, workers are 0 to 1"),
        ("0=bullet", "worker 1 has none"),
        ("bullet,1=warp", "no engine named 'warp'; known engines: bullet, mujoco, rapier"),
    ],
)
def test_workers_and_names_are_checked_before_anything_starts(text: str, message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        Simulation(scenes.build("chain", 8), Params(workers=2, engine=text))
    with pytest.raises(LapjointError):
        BenchPlan([scenes.build("chain", 8)], [2], Params(engine=text))


# ---- what is refused and left out --------------------------------------------------------------------------------


def shaped(shape: object) -> Scene:
    scene = Scene("shapes")
    scene.add_static(Plane())
    scene.add_static(shape)  # type: ignore[arg-type]
    return scene


def jointed(joint: object) -> Scene:
    scene = Scene("joints")
    scene.add_bodies(Sphere(0.1), [(0, 0, 0), (1, 0, 0)])
    scene.add_joint(joint, 0, 1, (0.5, 0, 0))  # type: ignore[arg-type]
    return scene


def grouped() -> Scene:
    scene = Scene("groups")
    scene.add_body(Sphere(0.1), group=1, mask=2)
    scene.add_body(Sphere(0.1), (1, 0, 0), group=2, mask=2)
    return scene


MESH = TriangleMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
TWO_FREE = SixAxis(angular=((-1, 1), FREE, LOCKED))
BOTH = SixAxis(linear=(FREE, LOCKED, LOCKED), springs={0: Spring(10)}, motors={0: Motor(1, 1)})
REFUSED = {
    "mesh": (
        shaped(MESH),
        MUJOCO,
        "static body 1 is a TriangleMesh, which the engine mujoco does not have; it has Sph",
    ),
    "slider": (jointed(Slider()), MUJOCO, "joint 0 is a Slider, which the engine mujoco does not have; it has Ball"),
    "limits": (jointed(Hinge(limits=(-1, 1))), MUJOCO, "joint 0 is a Hinge with limits, which the engine mujoco"),
    "sides": (grouped(), MUJOCO, "the engine mujoco cannot take groups and masks that differ from side to side"),
    "too many": (scenes.build("two-way-bridge", 2200), MUJOCO, "the engine mujoco takes at most 2,000"),
    "precision": (Scene(), Params(engine="mujoco"), "the engine mujoco computes in float64: --engine mujoco:float64"),
    "angles": (jointed(TWO_FREE), RAPIER, "joint 0 is a SixAxis with limits on one of several free rotations"),
    "drive": (
        jointed(Hinge(drive=Drive(stiffness=1))),
        RAPIER,
        "joint 0 is a Hinge with drives, which the engine rapier",
    ),
    "friction": (
        jointed(Slider(friction=1)),
        RAPIER,
        "joint 0 is a Slider with joint friction, which the engine rapier",
    ),
    "cone": (jointed(Ball(swing=1)), RAPIER, "joint 0 is a Ball with ball limits, which the engine rapier"),
    "turns": (
        jointed(Hinge(limits=(-9, 9))),
        RAPIER,
        "joint 0 is a Hinge with counted angles, which the engine rapier",
    ),
    "gear": (jointed(Gear(2.0)), RAPIER, "joint 0 is a Gear, which the engine rapier does not have; it has Ball"),
    "ball limits": (
        jointed(Ball(twist=(-1, 1))),
        MUJOCO,
        "joint 0 is a Ball with ball limits, which the engine mujoco",
    ),
    "sequential": (
        jointed(Hinge(drive=Drive(damping=1))),
        Params(solver="sequential"),
        "joint 0 is a Hinge with drives, which only the solver substeps has, and solver is sequential",
    ),
    "sequential gear": (
        jointed(Gear(2.0)),
        Params(solver="sequential"),
        "joint 0 is a Gear, which only the solver substeps has, and solver is sequential",
    ),
    "motor and spring": (jointed(BOTH), RAPIER, "joint 0 is a SixAxis with a motor and a spring on one axis"),
    "compound": (
        shaped(Compound((Part(Sphere(0.4)),))),
        Params(engine="springs:float64"),
        "static body 1 is a Compound of Sphere, which the engine springs does not have",
    ),
    "sleep": (Scene(), Params(engine="rapier", sleep=True), "sleep is on, which the engine rapier does not have"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_an_engine_cannot_do_is_refused_by_name(case: str) -> None:
    scene, params, message = REFUSED[case]
    installed(EngineChoice.parse(params.engine).names[0])
    with pytest.raises(LapjointError, match=re.escape(message)):
        make_engine(scene, params)
    with pytest.raises(LapjointError, match=re.escape(message)):
        Simulation(scene, params)


def test_a_scene_is_checked_once_for_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker did so too, twice: a third of the start, where there are many joints."""
    checked = []
    check = registry.check_support
    monkeypatch.setattr(registry, "check_support", lambda *given: checked.append(check(*given)))
    with Simulation(scenes.build("chain", 24), Params(workers=3, runtime="inline")) as simulation:
        simulation.step()
    assert len(checked) == 1


def test_what_an_engine_leaves_out_is_a_warning() -> None:
    installed("rapier")
    scene = scenes.build("building", 80)
    with (
        pytest.warns(EngineWarning, match="the engine rapier has no rolling friction; that of 2 bodies is left out"),
        Simulation(scene, Params(engine="rapier", runtime="inline")),
    ):
        pass


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapjoint.engines.registry.engine_version", lambda _: None)
    with pytest.raises(
        LapjointError, match=r"engine rapier needs the package rapier3d, .*pip install lapjoint\[rapier\]"
    ):
        make_engine(Scene(), RAPIER)


# ---- Rapier ------------------------------------------------------------------------------------------------------


def hung(joint: object, axis: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Scene:
    """A box held to the world by a joint, weightless but for `axis`."""
    scene = Scene("hung", gravity=axis, timestep=0.004)
    scene.add_body(Box((0.4, 0.3, 0.2)), (0.0, 0.0, 1.0))
    scene.add_joint(joint, 0, WORLD, (0.0, 0.0, 1.0))  # type: ignore[arg-type]
    return scene


JOINTS = {
    "hinge": hung(Hinge((0.0, 1.0, 0.0), motor=Motor(2.0, 500.0))),
    "weak hinge": hung(Hinge((0.0, 1.0, 0.0), motor=Motor(50.0, 0.3))),
    "hinge at its limit": hung(Hinge((0.0, 1.0, 0.0), limits=(-0.2, 0.3), motor=Motor(2.0, 50.0))),
    "slider": hung(Slider((0.0, 1.0, 0.0), motor=Motor(-0.5, 500.0))),
    "slider at its limit": hung(Slider((0.0, 0.0, 1.0), limits=(-0.1, 0.4)), (0.0, 0.0, -9.81)),
    "fixed": hung(Fixed(), (0.0, 0.0, -9.81)),
    "ball": hung(Ball(), (0.0, 0.0, -9.81)),
    "six axes": hung(SixAxis(linear=(FREE, (-0.1, 0.2), LOCKED)), (3.0, 5.0, 0.0)),
    "spring": hung(SixAxis(linear=(FREE, LOCKED, LOCKED), springs={0: Spring(900.0, 300.0, 0.2)})),
    "torsion spring": hung(SixAxis(angular=(FREE, LOCKED, LOCKED), springs={3: Spring(20.0, 4.0, 0.5)})),
}


@pytest.mark.parametrize("name", JOINTS)
def test_joints_mean_to_rapier_what_they_mean_to_bullet(name: str) -> None:
    installed("rapier")
    scene, ends = JOINTS[name], []
    for params in (Params(precision="float64"), RAPIER):
        engine = make_engine(scene, params)
        engine.activate([0], scene.states)
        engine.step(200)
        ends.append(engine.get_states()[0])
    if ends[0][3:7] @ ends[1][3:7] < 0:
        ends[1][3:7] *= -1
    np.testing.assert_allclose(ends[1][:7], ends[0][:7], atol=0.02)
    np.testing.assert_allclose(ends[1][7:], ends[0][7:], atol=0.06, rtol=0.02)


def test_a_state_read_as_bytes_is_the_state_that_properties_tell() -> None:
    installed("rapier")
    from lapjoint.engines.rapier_states import read_slowly

    scene = scenes.build("bridge", 40)
    engine = make_engine(scene, RAPIER)
    engine.activate(np.arange(scene.body_count), scene.states)
    engine.step(5)
    assert engine._reader.is_fast  # type: ignore[attr-defined]
    bodies = [engine._bodies[b] for b in range(scene.body_count)]  # type: ignore[attr-defined]
    fast = engine.get_states()
    np.testing.assert_allclose(fast, read_slowly(bodies), rtol=1e-6, atol=1e-6)
    engine._reader._size += 1  # type: ignore[attr-defined]
    slow = engine.read(np.arange(len(bodies)))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(slow, read_slowly(bodies))


# ---- many workers ------------------------------------------------------------------------------------------------


def end_of(scene: Scene, steps: int, **params: object) -> tuple[str, float, np.ndarray]:
    """State hash, largest joint gap and states after some steps."""
    with Simulation(scene, Params.from_options(workers=2, validate=True, **params)) as simulation:
        simulation.step(steps)
        return simulation.state_hash, float(simulation.joints.gaps().max(initial=0.0)), simulation.states


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["rapier", "bullet,1=rapier", "0=rapier,1=bullet:float64", "mujoco:float64"])
def test_a_bridge_holds_on_other_and_on_mixed_engines_in_every_runtime(engine: str) -> None:
    installed(*EngineChoice.parse(engine).names)
    scene = scenes.build("bridge", 61)
    inline, gap, states = end_of(scene, 60, engine=engine, runtime="inline")
    assert gap < 0.01
    assert np.abs(states[:, :3] - scene.states[:, :3]).max() < 0.3
    assert end_of(scene, 60, engine=engine, runtime="process")[0] == inline


def test_a_pile_stands_on_two_engines() -> None:
    installed("rapier")
    scene = Scene("pile", timestep=0.004)
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(1.02 * x, 0.0, 0.5 + z) for x in range(6) for z in range(3)])
    _, _, states = end_of(scene, 150, engine="bullet,1=rapier", runtime="inline")
    np.testing.assert_allclose(states[:, 2], scene.states[:, 2], atol=0.03)


@pytest.mark.slow
def test_a_plug_in_runs_in_processes_of_its_own() -> None:
    scene = Scene("balls")
    scene.add_static(Plane())
    grid = np.stack(np.meshgrid(range(3), range(3), range(3), indexing="ij"), axis=-1).reshape(-1, 3)
    scene.add_bodies(Sphere(0.2), 0.42 * grid + [0.01, 0.0, 0.25] * (grid + 1))
    one, _, states = end_of(scene, 150, engine="springs:float64", runtime="inline", iterations=10)
    assert end_of(scene, 150, engine="springs:float64", runtime="process", iterations=10)[0] == one
    assert states[:, 2].min() > 0.15
    assert states[:, 2].max() < scene.states[:, 2].max() - 0.2


@pytest.mark.slow
def test_the_server_detects_with_a_foreign_engine_too() -> None:
    installed("rapier")
    scene = scenes.build("plank", 30)
    ways = [end_of(scene, 120, engine="rapier", runtime="inline", detect=detect)[2] for detect in ("workers", "server")]
    np.testing.assert_allclose(ways[0][:, :3], ways[1][:, :3], atol=0.05)


def test_an_engine_without_memory_goes_on_from_states() -> None:
    installed("rapier")
    scene = scenes.build("bridge", 40)
    engine = make_engine(scene, RAPIER)
    engine.activate(np.arange(0, scene.body_count, 2), scene.states[::2])
    engine.step(3)
    twin = make_engine(scene, RAPIER)
    twin.activate([1], scene.states[[1]])
    twin.restore(engine.state())
    assert twin.active_ids.tolist() == engine.active_ids.tolist()
    np.testing.assert_allclose(twin.get_states(), engine.get_states(), rtol=1e-6, atol=1e-6)
    with pytest.raises(LapjointError, match="of another engine or precision"):
        twin.restore(replace(engine.state(), bodies=np.zeros((3, 7))))


# ---- bounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_bounds_never_miss_a_contact_and_never_promise_too_much(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [Sphere(0.5), Box((1.0, 0.6, 0.3)), Capsule(0.2, 0.6)]
    scene = Scene()
    turns = rng.normal(size=(400, 4))
    places = np.repeat(np.arange(200)[:, None] * [10.0, 0, 0], 2, axis=0)
    places[1::2] += 0.7 * rng.normal(size=(200, 3))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    scene.add_bodies([shapes[k] for k in rng.integers(3, size=400)], places, turns)
    pairs = np.arange(400, dtype=np.int32).reshape(-1, 2)
    exact = make_engine(scene, Params(precision="float64")).clearances(pairs, scene.states)
    bounds = Bounds(scene, 1.0).clearances(pairs, scene.states)
    assert not bounds[exact == 0].any()
    assert (bounds <= exact + 0.05).all(), "0.05: margins of Bullet's"
    assert (bounds[exact > 0.2] > 0).mean() > 0.7, "most pairs that are apart are seen to be"


# ---- plug-ins and commands ---------------------------------------------------------------------------------------


class Silent:
    """An engine that does not declare what it supports."""


class Rough(CheckedEngine):
    """An engine that says that it takes steps with neighbours, and cannot."""

    supports = Support("lapjoint", ("float64",), features=(), couplings=("blend", "tight"))


class Partial:
    """An engine that has not all methods of one."""

    supports = Support("lapjoint", ("float64",), features=())
    active_ids = live_joint_ids = activate = deactivate = set_states = get_states = add_forces = step = check = None


def test_an_engine_without_the_methods_that_it_declares_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    found = [
        EntryPoint(one.__name__.lower(), f"{__name__}:{one.__name__}", "lapjoint.engines") for one in (Rough, Partial)
    ]
    monkeypatch.setattr("lapjoint.plug_ins.entry_points", lambda group: found)
    with pytest.raises(LapjointError, match=r"engine rough .* has no mail_bytes, which the coupling tight needs"):
        make_engine(Scene(), Params(engine="rough"))
    with pytest.raises(LapjointError, match=r"engine partial .* has no change, which every engine has"):
        make_engine(Scene(), Params(engine="partial"))


def test_the_protocol_is_a_dozen_methods() -> None:
    """Of an engine that is made, besides two properties."""
    assert len([name for name, one in vars(Engine).items() if isfunction(one) and not name.startswith("_")]) == 12


def test_a_broken_plug_in_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    found = [
        EntryPoint(name, value, "lapjoint.engines")
        for name, value in (("gone", "no_such_module:Engine"), ("silent", f"{__name__}:Silent"))
    ]
    monkeypatch.setattr("lapjoint.plug_ins.entry_points", lambda group: found)
    assert engine_names() == ["gone", "silent"]
    with pytest.raises(LapjointError, match=r"engine gone \(no_such_module:Engine\) cannot be loaded: ModuleNotFound"):
        make_engine(Scene(), Params(engine="gone"))
    with pytest.raises(LapjointError, match=r"engine silent .* does not declare what it supports"):
        make_engine(Scene(), Params(engine="silent"))
    monkeypatch.setattr("lapjoint.cli.engines.WIDTH", 300)
    result = CliRunner().invoke(app, ["engines"], catch_exceptions=False)
    assert "cannot be loaded" in result.stdout


def test_engines_are_listed_with_what_they_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapjoint.cli.engines.WIDTH", 300)
    lines = CliRunner().invoke(app, ["engines"], catch_exceptions=False).stdout.splitlines()
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert list(rows) == ["engine", "bullet", "mujoco", "rapier", "springs"]
    assert re.search(r"3\.26 +float32 float64 +blend tight +all +all +all$", rows["bullet"].rstrip())
    assert re.search(
        r"0\.1\.0 +float64 +blend +Sphere, Plane +Ball +groups, iterations, exact clearances", rows["springs"]
    )
    assert re.search(r"all but Ellipsoid +all but Distance, Gear +limits, motors, springs, groups", rows["rapier"])
    assert "all but Cone, TriangleMesh" in rows["mujoco"]


def test_an_engine_declares_only_what_exists() -> None:
    with pytest.raises(LapjointError, match="no feature named 'flying'; known features: limits"):
        Support("x", ("float32",), features=("flying",))
    for name in {kind[0] for kind in ENGINES}:
        assert supports(name).couplings == (("blend", "tight") if name == "bullet" else ("blend",))


def test_a_recording_names_all_engines() -> None:
    assert versions("bullet")["engine"].startswith("bullet of lapjoint ")
    assert re.fullmatch(
        r"bullet of lapjoint .+, springs of spring-engine 0\.1\.0", versions("bullet,1=springs")["engine"]
    )


@pytest.mark.slow
def test_run_and_bench_take_several_engines(tmp_path: Path) -> None:
    installed("rapier")
    result = CliRunner().invoke(
        app,
        ["run", "chain", "--size", "12", "--steps", "5", "--workers", "2", "--engine", "0=bullet", "1=rapier"],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    assert "0=bullet,1=rapier float32" in result.stdout
    command = (
        f"bench chain --size 12 --workers 2 --iterations 10 --steps 2 --repetitions 1 --warmup 1 --csv {tmp_path}/b.csv"
    )
    result = CliRunner().invoke(app, [*command.split(), "--engine", "bullet", "rapier"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("bullet beside rapier")
    lines = (tmp_path / "b.csv").read_text().splitlines()
    column = lines[0].split(",").index("engine")
    assert [line.split(",")[column] for line in lines[1:]] == ["bullet", "bullet", "rapier", "rapier"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run chain --engine bullet rapier", "two engines for all workers"),
        ("run chain --engine bullet,1=rapier --workers 1", "there is no worker 1, workers are 0 to 0"),
        ("bench chain --engine bullet bullet", "engine 'bullet' is given more than once"),
        ("bench chain --engine bullet rapier --peer rapier", "--peer is given with several engines"),
    ],
)
def test_a_mistake_is_one_line(
    command: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warnings.showwarning", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["lapjoint", *command.split()])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_a_summary_has_no_number_that_json_does_not_know(tmp_path: Path) -> None:
    """Rapier does not report its residual."""
    file = tmp_path / "run.json"
    command = f"run bowl --size 60 --steps 3 --workers 2 --runtime inline --engine rapier --json {file}"
    result = CliRunner().invoke(app, command.split(), catch_exceptions=False)
    assert result.exit_code == 0

    def refuse(name: str) -> None:
        raise AssertionError(name)

    summary = json.loads(file.read_text(), parse_constant=refuse)
    assert summary["residual_mean"] is None
    assert summary["worker_residual_mean"] == []


@pytest.mark.slow
def test_bodies_along_a_line_are_activated_in_no_time() -> None:
    """One after the other they would make Bullet's tree a list: 60,000 spheres took a minute and more."""
    code = """
        import resource
        import numpy as np
        from lapjoint import Scene, Sphere, make_engine
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
        count = 60_000
        line = Scene("line")
        line.add_bodies(Sphere(0.5), np.arange(count)[:, None] * [1.5, 0.0, 0.0])
        engine = make_engine(line)
        engine.activate(np.arange(count), line.states)
        engine.step(3)
        print(len(engine.contacts()), engine.get_states()[:, 9].max() < 0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0 True\n"), done.stderr
