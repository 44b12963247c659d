"""The controls of a live simulation, and of hands."""

from __future__ import annotations

import numpy as np
import viser

from ...params.params import CHOICES, ROUNDS
from .live import LiveView

SPEEDS: dict[str, float | None] = {
    "1/16": 1 / 16,
    "1/8": 1 / 8,
    "1/4": 1 / 4,
    "1/2": 1 / 2,
    "real time": 1.0,
    "2 x": 2.0,
    "5 x": 5.0,
    "as fast as it can": None,
}


def build_live_controls(view: LiveView, client: viser.ClientHandle) -> None:
    """Folders "Simulation" and "Hands" in the browser that holds the controls."""
    _build_simulation(view, client)
    _build_hands(view, client)


def _build_simulation(view: LiveView, client: viser.ClientHandle) -> None:
    gui, params = client.gui, view.simulation.params
    speeds = {value: name for name, value in SPEEDS.items()}
    assert params.iterations is not None
    with gui.add_folder("Simulation", order=2):
        play = gui.add_button("Pause")
        step = gui.add_button("Single step", icon=viser.Icon.PLAYER_SKIP_FORWARD)
        speed = gui.add_dropdown("Speed", list(SPEEDS), initial_value=speeds.get(view.speed, "real time"))
        iterations = gui.add_number("Iterations", params.iterations, min=1, max=100_000, step=1)
        if view.most_workers > 1 and params.max_workers is None:
            count = gui.add_slider("Workers", 1, view.most_workers, 1, params.workers)
            count.on_update(lambda _: view.ask(lambda simulation: simulation.set_worker_count(int(count.value))))
        if params.coupling == "tight":
            _build_rounds(view, gui)
        elif view.most_workers > 1:
            depth = gui.add_slider("Growth depth", 0, 10, 1, min(view.simulation.growth_depth, 10))
            depth.on_update(lambda _: view.ask(lambda simulation: simulation.set_growth_depth(int(depth.value))))
        if view.most_workers > 1:
            load = gui.add_dropdown("Load", list(CHOICES["load"]), initial_value=params.load)
            load.on_update(lambda _: view.ask(lambda simulation: simulation.set_load(load.value)))

    def name_play() -> None:
        play.label = "Play" if view.paused else "Pause"
        play.icon = viser.Icon.PLAYER_PLAY if view.paused else viser.Icon.PLAYER_PAUSE

    def on_play(_: object) -> None:
        view.pause(not view.paused)
        name_play()
        view.page.repaint()

    def on_step(_: object) -> None:
        view.paused = True
        view.single_step()
        name_play()

    def on_speed(_: object) -> None:
        view.speed = SPEEDS[speed.value]

    name_play()
    play.on_click(on_play)
    step.on_click(on_step)
    speed.on_update(on_speed)
    iterations.on_update(lambda _: view.ask(lambda simulation: simulation.set_iterations(int(iterations.value))))


def _build_rounds(view: LiveView, gui: viser.GuiApi) -> None:
    """In place of growth depth, which tight coupling does not have."""
    now = view.simulation.params.rounds or ROUNDS
    rounds = gui.add_slider("Rounds", 1, max(2 * ROUNDS, now), 1, now, hint="More: a smaller residual, slower steps.")
    rounds.on_update(lambda _: view.ask(lambda simulation: simulation.set_rounds(int(rounds.value))))


def _build_hands(view: LiveView, client: viser.ClientHandle) -> None:
    gui, page = client.gui, view.page
    extent = float(np.linalg.norm(np.ptp(page.scene.bodies.position[: page.body_count], axis=0)))
    with gui.add_folder("Hands", order=30):
        drags = gui.add_checkbox("Dragging moves bodies", True, hint="Off: dragging always turns the camera.")
        strength = gui.add_slider("Pull", 0.1, 20.0, 0.1, 1.0, hint="For bodies that hang together: pull harder.")
        keep = gui.add_checkbox("Keep pulling when let go", view.keep_pulls)
        freeze = gui.add_button("Freeze or release the clicked body", icon=viser.Icon.SNOWFLAKE)
        remove_one = gui.add_button("Remove forces on the clicked body")
        remove_all = gui.add_button("Remove all forces")
        if page.ball_count:
            most = float(np.ceil(max(6 * np.sqrt(extent * 9.81), 10.0)))
            speed = gui.add_slider("Throwing speed [m/s]", 1.0, most, 0.5, most / 2)
            throw = gui.add_button(
                "Throw a ball", icon=viser.Icon.BALL_BASEBALL, hint="From the camera to the middle of the screen."
            )

            def on_throw(_: object) -> None:
                ahead = np.subtract(client.camera.look_at, client.camera.position)
                view.throw(client.camera.position, ahead, speed.value)

            throw.on_click(on_throw)

    def clicked() -> int | None:
        holder = page.holder()
        body = None if holder is None else holder.body
        if body is None:
            page.notify(client, "No body", "Click a body first.")
        return body

    def on_drags(_: object) -> None:
        view.set_dragging(drags.value)

    def on_freeze(_: object) -> None:
        body = clicked()
        if body is not None:
            view.freeze(body, body not in page.snapshot.frozen)

    def on_remove(_: object) -> None:
        body = clicked()
        if body is not None:
            view.remove_pulls(body)

    def on_strength(_: object) -> None:
        view.strength = strength.value

    def on_keep(_: object) -> None:
        view.keep_pulls = keep.value

    drags.on_update(on_drags)
    freeze.on_click(on_freeze)
    remove_one.on_click(on_remove)
    remove_all.on_click(lambda _: view.remove_pulls())
    strength.on_update(on_strength)
    keep.on_update(on_keep)
