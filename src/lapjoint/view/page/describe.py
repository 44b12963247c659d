"""Describe: the texts of a page about one body, about workers and about colours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...scene import WORLD
from ...scene.joints import JointKind
from ...scene.measures import joint_gaps
from ..draw.colors import worker_colors
from .escape import escaped
from .snapshot import Snapshot
from .tints import Legend

Array = NDArray[np.float64]
MOST = 6
"""How many contacts and joints are listed one by one."""


def body_text(snapshot: Snapshot, body: int) -> str:
    """A body that is there, as Markdown: name, state, workers and weights, contacts, joints."""
    scene, state = snapshot.scene, snapshot.states[body]
    shape = scene.shapes[scene.bodies.shape_id[body]]
    held = " · **frozen**" if body in snapshot.frozen else ""
    pulled = " · **pulled**" if body in snapshot.pulled else ""
    rows = {
        "shape": f"{type(shape).__name__}, {scene.bodies.mass[body]:.4g} kg, label {scene.bodies.label[body]}",
        "position": _vector(state[:3], "m"),
        "quaternion": _vector(state[3:7], ""),
        "velocity": f"{_vector(state[7:10], 'm/s')}: {np.linalg.norm(state[7:10]):.3g} m/s",
        "angular velocity": _vector(state[10:13], "rad/s"),
        "workers": _workers(snapshot, body),
        "contacts": _contacts(snapshot, body),
        "joints": _joints(snapshot, body),
    }
    title = escaped(scene.body_title(body))
    table = "\n".join(f"| **{name}** | {text} |" for name, text in rows.items())
    return f"**{title}**{held}{pulled}\n\n|  |  |\n|---|---|\n{table}"


def _vector(values: Array, unit: str) -> str:
    return " ".join(f"{0.0 if abs(value) < 5e-4 else value:.3f}" for value in values) + (f" {unit}" if unit else "")


def _workers(snapshot: Snapshot, body: int) -> str:
    own = np.flatnonzero(snapshot.is_member[body])
    if snapshot.exchanges is not None:  # tight coupling: every body has one
        return f"{own[0]}, {'at the interface' if body in snapshot.interface else 'inside'}"
    return ", ".join(f"{w}: {snapshot.weights[body, w]:.2f}" for w in own)


def _contacts(snapshot: Snapshot, body: int) -> str:
    scene, contacts = snapshot.scene, snapshot.contacts
    if contacts is None:
        return "not known"
    rows = np.flatnonzero((contacts.bodies == body).any(axis=1))
    others = contacts.bodies[rows].sum(axis=1) - body
    names = [escaped(scene.body_title(k)) if k >= 0 else f"static body {-1 - k}" for k in others[:MOST].tolist()]
    depths = contacts.depth[rows]
    listed = [f"{name} ({1e3 * depth:.2g} mm)" for name, depth in zip(names, depths, strict=False)]
    return _listed(len(rows), listed)


def _joints(snapshot: Snapshot, body: int) -> str:
    scene, joints = snapshot.scene, snapshot.scene.joints
    rows = np.flatnonzero((joints.body_a == body) | (joints.body_b == body))
    gaps = joint_gaps(scene, snapshot.states, rows[:MOST])
    listed = []
    for row, gap in zip(rows[:MOST].tolist(), gaps, strict=True):
        other = int(joints.body_b[row] if joints.body_a[row] == body else joints.body_a[row])
        name = "the world" if other == WORLD else escaped(scene.body_title(other))
        kind = JointKind(joints.kind[row]).name.lower().replace("_", "-")
        state = f"gap {1e3 * gap:.2g} mm" if snapshot.joint_alive[row] else "holds no more"
        listed.append(f"{kind} to {name} ({state})")
    return _listed(len(rows), listed)


def _listed(count: int, names: list[str]) -> str:
    more = f", and {count - len(names)} more" if count > len(names) else ""
    return f"{count}" + (f": {', '.join(names)}{more}" if names else "")


# ---- HTML: numbers and colours only, nothing that a scene's author wrote ---------------------------------------------


def legend_html(legend: Legend) -> str:
    """Colours and their meaning."""
    if legend.scale is not None:
        stops = ", ".join(_css(color) for color in legend.scale)
        bar = f'<div style="height:10px;border-radius:3px;background:linear-gradient(to right, {stops})"></div>'
        ends = (
            f'<div style="display:flex;justify-content:space-between">{_small(legend.low)}{_small(legend.high)}</div>'
        )
        return f'<div style="padding:0 0.9em 0.4em">{bar}{ends}</div>'
    shown = legend.entries[:16]
    cells = [
        f'<span style="white-space:nowrap;margin-right:0.8em"><span style="display:inline-block;width:10px;height:10px;'
        f'border-radius:2px;background:{_css(color)}"></span> {_small(text)}</span>'
        for color, text in shown
    ]
    if len(legend.entries) > len(shown):
        cells.append(_small(f"and {len(legend.entries) - len(shown)} more"))
    return f'<div style="padding:0 0.9em 0.4em;line-height:1.4">{"".join(cells)}</div>'


def workers_html(bodies: NDArray[np.int64], contacts: NDArray[np.int64] | None) -> str:
    """Bodies and contacts of each worker, as bars."""
    colors = worker_colors(len(bodies))
    rows = []
    for w, color in enumerate(colors[:64]):
        cells = [_bar(int(bodies[w]), int(bodies.max()), color)]
        if contacts is not None:
            cells.append(_bar(int(contacts[w]), int(contacts.max()), color))
        rows.append(f"<tr><td>{w}</td>{''.join(cells)}</tr>")
    heads = "".join(
        f'<th style="text-align:left;font-weight:500">{name}</th>'
        for name in ("", "bodies", *(() if contacts is None else ("contacts",)))
    )
    return (
        '<div style="padding:0 0.9em 0.4em"><table style="width:100%;font-size:0.75em;border-spacing:4px 1px">'
        f"<tr>{heads}</tr>{''.join(rows)}</table></div>"
    )


def _bar(count: int, most: int, color: Array) -> str:
    share = 100 * count / max(most, 1)
    return (
        '<td style="width:48%"><div style="position:relative;height:1.4em;background:rgba(128,128,128,0.15)">'
        f'<div style="position:absolute;inset:0 auto 0 0;width:{share:.0f}%;background:{_css(color)}"></div>'
        f'<span style="position:relative;padding-left:0.4em">{count:,}</span></div></td>'
    )


def _small(text: str) -> str:
    return f'<span style="font-size:0.75em">{text}</span>'


def _css(color: Array) -> str:
    return "#" + "".join(f"{round(255 * value):02x}" for value in color)
