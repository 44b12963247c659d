"""The controls of a live simulation, and of hands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import viser

from ...params.coupling_choice import traits
from ...params.params import CHOICES
from .button_help import add_button_help
from .control_values import value_of
from .page import Page
from .picking import is_camera
from .snapshot import Snapshot
from .steering import Steering

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


class LivePanel:
    """Folders "Simulation" and "Hands" in the browser that holds the controls."""

    def __init__(self, page: Page, steering: Steering, most_workers: int, set_dragging: Callable[[bool], None]) -> None:
        self._page, self._steering, self._most_workers = page, steering, most_workers
        self._set_dragging = set_dragging
        places = page.scene.bodies.position
        extent = float(np.linalg.norm(np.ptp(places, axis=0))) if len(places) else 0.0
        self._most_speed = float(np.ceil(max(6 * np.sqrt(extent * 9.81), 10.0)))
        self._play: viser.GuiButtonHandle | None = None
        page.build_controls.append(self._build_simulation)
        page.build_controls.append(self._build_hands)
        page.on_repaint.append(self._name_play)

    # ---- simulation ------------------------------------------------------------------------------------------------

    def _build_simulation(self, client: viser.ClientHandle) -> None:
        gui, steering, params = client.gui, self._steering, self._steering.simulation.params
        names = {value: name for name, value in SPEEDS.items()}
        with gui.add_folder("Simulation", order=2):
            self._play = play = gui.add_button("Pause", hint="Stop before the next step, or go on.")
            step = gui.add_button(
                "Single step", icon=viser.Icon.PLAYER_SKIP_FORWARD, hint="Pause, and take one timestep."
            )
            restart = gui.add_button(
                "Restart",
                icon=viser.Icon.REFRESH,
                disabled=not steering.can_restart,
                hint="Begin again from the scene's start; the settings below stay."
                if steering.can_restart
                else "Not in a run with --record, --json, --measure or --checkpoint.",
            )
            speed = gui.add_dropdown(
                "Speed",
                list(SPEEDS),
                initial_value=names.get(steering.speed, "real time"),
                hint="Most simulated time per wall time. A step that takes longer is not made up for.",
            )
            if params.solver != "substeps":
                self._build_iterations(gui)
            if self._most_workers > 1:
                self._build_sharing(gui)
            add_button_help(gui, play, step, restart)

        def on_play(_: object) -> None:
            steering.pause(not steering.paused)
            self._page.repaint()

        def on_step(_: object) -> None:
            steering.paused = True
            steering.single_step()
            self._page.repaint()

        def on_speed(_: object) -> None:
            steering.speed = SPEEDS[value_of(speed)]

        self._name_play()
        play.on_click(on_play)
        step.on_click(on_step)
        restart.on_click(lambda _: steering.restart(self._page.repaint))
        speed.on_update(on_speed)

    def _build_iterations(self, gui: viser.GuiApi) -> None:
        """The setting of a solver that has iterations."""
        steering = self._steering
        iterations = gui.add_number(
            "Iterations",
            steering.simulation.params.sequential.iterations or 1,
            min=1,
            max=100_000,
            step=1,
            hint="Sweeps of the solver per step: more is more accurate and slower.",
        )

        def on_iterations(_: object) -> None:
            count = int(value_of(iterations))
            steering.change("iterations", lambda simulation: simulation.workers.set_iterations(count))

        iterations.on_update(on_iterations)

    def _build_sharing(self, gui: viser.GuiApi) -> None:
        """Settings that only several workers have."""
        steering, simulation = self._steering, self._steering.simulation
        params = simulation.params
        if params.max_workers is None:
            workers = gui.add_slider(
                "Workers",
                1,
                self._most_workers,
                1,
                params.workers,
                hint="How many workers share the scene; another number repartitions it.",
            )

            def on_workers(_: object) -> None:
                count = int(value_of(workers))
                steering.change("workers", lambda simulation: simulation.workers.set_count(count))

            workers.on_update(on_workers)
        if traits(params.coupling).overlaps:
            depth = gui.add_slider(
                "Growth depth",
                0,
                10,
                1,
                min(simulation.workers.growth_depth, 10),
                hint="How many edges beyond the interface overlap grows. Deeper: closer to one worker, slower steps.",
            )

            def on_depth(_: object) -> None:
                edges = int(value_of(depth))
                steering.change("growth_depth", lambda simulation: simulation.workers.set_growth_depth(edges))

            depth.on_update(on_depth)
        load = gui.add_dropdown(
            "Load",
            list(CHOICES["load"]),
            initial_value=params.load,
            hint="What balancing evens out between workers: active bodies, contacts, or measured time.",
        )

        def on_load(_: object) -> None:
            kind = value_of(load)
            steering.change("load", lambda simulation: simulation.workers.set_load(kind))

        load.on_update(on_load)

    def _name_play(self, snapshot: Snapshot | None = None) -> None:
        """Label the first button with what it does now."""
        label = "Play" if self._steering.paused else "Pause"
        if self._play is not None and self._page.holder() is not None:
            self._play.label = label
            self._play.icon = viser.Icon.PLAYER_PLAY if self._steering.paused else viser.Icon.PLAYER_PAUSE
            self._play.disabled = self._steering.done

    # ---- hands -------------------------------------------------------------------------------------------------------

    def _build_hands(self, client: viser.ClientHandle) -> None:
        gui, page, steering = client.gui, self._page, self._steering
        with gui.add_folder("Hands", order=30):
            gui.add_markdown("**Drag** a body to pull it by a spring. **Click** one to choose it: it turns magenta.")
            drags = gui.add_checkbox("Dragging moves bodies", True, hint="Off: dragging always turns the camera.")
            strength = gui.add_slider(
                "Pull",
                0.1,
                20.0,
                0.1,
                steering.strength,
                hint="Factor on the spring's force. Bodies that others hang on need a stronger pull.",
            )
            keep = gui.add_checkbox(
                "Keep pulling when let go",
                steering.keep_pulls,
                hint="On: the spring stays where the mouse leaves it, until it is removed.",
            )
            freeze = gui.add_button(
                "Freeze or release the clicked body",
                icon=viser.Icon.SNOWFLAKE,
                hint="A frozen body stays where it is, whatever pushes it; it is tinted light blue.",
            )
            remove_one = gui.add_button(
                "Remove forces on the clicked body", hint="Springs that were kept on this body end."
            )
            remove_all = gui.add_button("Remove all forces", hint="Springs that were kept on any body end.")
            remove_body = gui.add_button(
                "Remove the clicked body",
                icon=viser.Icon.TRASH,
                hint="It and its joints are gone. Restart brings back what the scene begins with.",
            )
            buttons = [freeze, remove_one, remove_all, remove_body]
            if steering.ball_count:
                buttons.append(self._build_throwing(client))
            add_button_help(gui, *buttons)

        def clicked() -> int | None:
            holder = page.holder()
            body = None if holder is None else holder.chosen(page.snapshot)
            if body is None:
                page.notify(client, "No body", "Click a body first.")
            return body

        def on_freeze(_: object) -> None:
            body = clicked()
            if body is not None:
                steering.freeze(body, body not in page.snapshot.frozen)

        def on_remove(_: object) -> None:
            body = clicked()
            if body is not None:
                steering.remove_pulls(body)

        def on_remove_body(_: object) -> None:
            body = clicked()
            if body is not None:
                steering.remove(body)

        def on_strength(_: object) -> None:
            steering.strength = value_of(strength)

        def on_keep(_: object) -> None:
            steering.keep_pulls = keep.value

        drags.on_update(lambda _: self._set_dragging(drags.value))
        freeze.on_click(on_freeze)
        remove_one.on_click(on_remove)
        remove_all.on_click(lambda _: steering.remove_pulls())
        remove_body.on_click(on_remove_body)
        strength.on_update(on_strength)
        keep.on_update(on_keep)

    def _build_throwing(self, client: viser.ClientHandle) -> viser.GuiButtonHandle:
        """Add the speed, and the button that throws, which is returned."""
        gui, camera, most = client.gui, client.camera, self._most_speed
        speed = gui.add_slider(
            "Throwing speed [m/s]", 1.0, most, 0.5, most / 2, hint="Speed at which a ball leaves the camera."
        )
        throw = gui.add_button(
            "Throw a ball",
            icon=viser.Icon.BALL_BASEBALL,
            hint="A new body, from the camera to the middle of the screen. When there are more than "
            f"{self._steering.ball_count}, the one thrown first is removed.",
        )

        def on_throw(_: object) -> None:
            if not is_camera(camera):
                return
            ahead = np.subtract(camera.look_at, camera.position)
            self._steering.throw(camera.position, ahead, value_of(speed))

        throw.on_click(on_throw)
        return throw
