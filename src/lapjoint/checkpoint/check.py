"""Whether what a checkpoint holds can be the state of a simulation of its scene.

A checksum says that a file is what somebody wrote, not that it makes sense. Compiled code reads these arrays in place:
with a body or a worker that does not exist it would read and write beyond them. So all is checked before any of it is
restored: which arrays there are, their types and shapes, that numbers of bodies, workers and joints are in range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algorithms.membership import WORD, validate_weights
from ..arrays.checks import LARGEST
from ..arrays.state import PartState
from ..engines import EngineState
from ..scene import STATE_SIZE, Scene
from ..scene.living import NEVER
from ..scene.motions import POSE_SIZE
from ..server.coupling.turns import check_turns
from ..step_tables import KEPT, Of, StepTable
from ..step_tables.sensor_events import SensorEvents
from ..workers.engine_states import from_bytes, to_bytes

Symbol = str | int


@dataclass(frozen=True)
class Rule:
    """An array's type and shape, and what its numbers are. Of a shape, `bodies`, `workers` and `words` are known; any
    other name stands for one number throughout its part."""

    dtype: str
    shape: tuple[Symbol, ...]
    low: Symbol | None = None
    high: Symbol | None = None
    """From `low` up to, and without, `high`."""
    optional: bool = False
    is_ascending: bool = False
    is_pairs: bool = False
    """Of what touches: two bodies, or a body and a static one."""


def _ids(*shape: Symbol, is_ascending: bool = False) -> Rule:
    return Rule("int32", shape, 0, "bodies", is_ascending=is_ascending)


def _pairs(count: Symbol) -> Rule:
    """Of bodies; -1 - s for the static body s."""
    return Rule("int32", (count, 2), "statics", "bodies", is_pairs=True)


BITS = Rule("uint64", ("bodies", "words"))
PAIRS = _pairs("pairs")
COUNTS = Rule("int32", ("pairs",), 0)
DEPTHS = Rule("float64", ("pairs",))
CONTACTS = {"bodies": PAIRS, "point_count": COUNTS, "depth": DEPTHS}
ENGINE = {
    "body_ids": _ids("engine bodies", is_ascending=True),
    "bodies": Rule("float", ("engine bodies", "body columns")),
    "prepared": Rule("bool", ("engine bodies",)),
    "point_bodies": _pairs("points"),
    "point_numbers": Rule("int32", ("points", "number columns")),
    "points": Rule("float", ("points", "point columns")),
    "joint_ids": Rule("int32", ("live joints",), 0, "joints"),
    "joint_bodies": Rule("int32", ("live joints", 2), -1, "bodies"),
    "joint_impulses": Rule("float", ("live joints",)),
    "kinematic_poses": Rule("float64", ("moving statics", POSE_SIZE)),
    "islands": Rule("int32", ("bodies that may sleep",), -1, "bodies"),
    "still_steps": Rule("int32", ("bodies that may sleep",), 0),
    "passed_bodies": _pairs("passed contacts"),
    "passed_numbers": Rule("int32", ("passed contacts", 4)),
    "passed_impulses": Rule("float", ("passed contacts", 7)),
    "broken_joints": Rule("int32", ("broken joints",), 0, "joints", is_ascending=True),
    "drive_axes": Rule("int32", ("driven axes",), 0, "joint axes", is_ascending=True),
    "drive_targets": Rule("float64", ("driven axes", 2)),
    "joint_count": Rule("int32", ("once",), 0),
}


def _under(prefix: str, rules: Mapping[str, Rule]) -> dict[str, Rule]:
    return {f"{prefix}/{name}": rule for name, rule in rules.items()}


def _table(kind: type[StepTable]) -> dict[str, Rule]:
    """Of a log of step tables."""
    ends: dict[Of | int | None, tuple[Symbol | None, Symbol | None]] = {
        None: (None, None),
        Of.BODY: (0, "bodies"),
        Of.CONTACT: ("statics", "bodies"),
        Of.JOINT: (0, "joints"),
        Of.STEP: (0, None),
    }
    rules = {}
    for one in fields(kind):
        of = one.metadata["of"]
        low, high = (0, of) if isinstance(of, int) else ends[of]
        shape = (kind.name, *one.metadata["shape"])
        rules[one.name] = Rule(one.metadata["dtype"].name, shape, low, high, is_pairs=of is Of.CONTACT)
    return rules


def _optional(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    return {name: replace(rule, optional=True) for name, rule in rules.items()}


ARRAYS: dict[str, dict[str, Rule]] = {
    "table": {
        "states": Rule("float64", ("bodies", STATE_SIZE)),
        "worker_states": Rule("float64", ("rows", STATE_SIZE)),
    },
    "membership": {
        "bits": BITS,
        "load": Rule("int64", ("workers",), 0),
        "cost": Rule("int64", ("bodies",), 0),
        "rate": Rule("int64", ("workers",), 0),
        "since_left": Rule("int32", ("bodies",)),
        "must_wait": Rule("int32", ("bodies",)),
    },
    "detection": {"contacts": PAIRS, **_optional(_under("engine", ENGINE))},
    "commands": {
        "known": BITS,
        "set": _ids("set bodies"),
        "broken": Rule("int32", ("broken joints",), 0, "joints", is_ascending=True),
        "force_ids": _ids("pushed bodies"),
        "forces": Rule("float64", ("pushed bodies", 6)),
    },
    "loads": {"cpu_ms": Rule("float64", ("timed workers",), optional=True)},
    "repartition": {
        "requested": Rule("int32", ("requested bodies",), 0, "workers", optional=True),
        "bits": Rule("uint64", ("bodies", "words"), optional=True),
        "placed": replace(_ids("placed bodies", is_ascending=True), optional=True),
    },
    "elastic": {},
    "frozen": {"ids": _ids("frozen bodies"), "rows": Rule("float64", ("frozen bodies", STATE_SIZE))},
    "recovery": {},
    "kinematic": {
        "ids": Rule("int32", ("motions",), 0, "static bodies", is_ascending=True),
        "kinds": Rule("int32", ("motions",), 0),
        "starts": Rule("int64", ("motions",), 0),
        "bases": Rule("float64", ("motions", POSE_SIZE)),
        "counts": Rule("int32", ("motions",), 0),
        "values": Rule("float64", ("motion values",)),
    },
    "drives": {
        "axes": Rule("int32", ("set axes",), 0, "joint axes", is_ascending=True),
        "targets": Rule("float64", ("set axes", 2)),
        "turned": Rule("int32", ("turned",), 0, "joints", is_ascending=True),
        "half_turns": Rule("int32", ("turned",)),
    },
    **{kind.name: _table(kind) for kind in KEPT if kind is not SensorEvents},
    "life": {
        f"{prefix}{name}": Rule("int32", (count,), 0)
        for prefix, count in (("", "bodies"), ("joint_", "joints"))
        for name in ("first_step", "last_step")
    },
}
ARRAYS["touches"]["touching"] = _pairs("touching pairs")
SENSING = {"inside": Rule("int32", ("inside", 2), 0), **_table(SensorEvents)}
"""Of scenes with sensors."""
GLUED = {"first": Rule("int32", ("glued bodies",), -1, "bodies")}
"""Of scenes with glued bodies."""
COUPLINGS: dict[str, dict[str, Rule]] = {
    "blend": {
        "bodies": _ids("overlap bodies", is_ascending=True),
        "offset": Rule("int32", ("edges",), 0),
        "worker": Rule("int32", ("rows",), 0, "workers"),
        "weight": Rule("float64", ("rows",)),
    },
    "tight": {
        "turns": Rule("int32", ("turns", "turns"), 0),
        "planned": Rule("int32", ("bodies",), 0, "workers", optional=True),
    },
}
REPLY = {"contact_bodies": PAIRS, "contact_point_count": COUNTS, "contact_depth": DEPTHS}


def check_description(step_count: Any, end: Any, every: Any, keep: Any, versions: Any) -> None:
    """Refuse, with a ValueError that names it, what no run can have written beside its parts."""
    counts = {"step_count": step_count, "end": 0 if end is None else end, "every": every, "keep": keep}
    for name, value in counts.items():
        if not _is_count(value):
            raise ValueError(name)
    if step_count > NEVER // 2:  # they are counted in 32 bits
        raise ValueError(f"step_count {step_count}")
    if not (isinstance(versions, dict) and all(isinstance(versions[name], str) for name in ("lapjoint", "engine"))):
        raise ValueError("versions")


def check_parts(parts: Mapping[str, PartState], scene: Scene, worker_count: int, coupling: str) -> None:
    """Refuse, with a ValueError that names what is wrong, parts that no simulation can have had. A part or value that
    is missing is a KeyError."""
    sizes = {
        "bodies": scene.body_count,
        "workers": worker_count,
        "words": -(-worker_count // WORD),
        "statics": -len(scene.statics),
        "static bodies": len(scene.statics),
        "joints": scene.joint_count,
        "joint axes": 6 * scene.joint_count,
        "glued bodies": len(scene.glued),
    }
    sensing = {"sensing": SENSING} if len(scene.sensors) else {}
    glued = {"glued": GLUED} if scene.glued else {}
    for name, rules in {**ARRAYS, **sensing, **glued, "coupling": COUPLINGS[coupling]}.items():
        _check_arrays(name, parts[name].arrays, rules, sizes)
    is_state = (np.abs(parts["table"].arrays["states"]) <= LARGEST).all(axis=1)
    if not is_state.all():
        raise ValueError(f"table/states is not finite for body {int(np.argmin(is_state))}, or beyond {LARGEST:.3g}")
    for name, bits in (("membership", "bits"), ("commands", "known"), ("repartition", "bits")):
        if bits in parts[name].arrays:
            _check_workers(f"{name}/{bits}", parts[name].arrays[bits], worker_count)
    has_worker = np.asarray(parts["membership"].arrays["bits"].any(axis=1))
    alive = parts["life"].arrays["last_step"] == NEVER
    for body in np.flatnonzero(has_worker != alive):
        wrong = "no worker for" if alive[body] else "a worker for the removed"
        raise ValueError(f"membership/bits has {wrong} body {body}")
    if coupling == "tight":
        check_turns("coupling/turns", parts["coupling"].arrays["turns"])
    row_count = _check_rows(parts["coupling"]) if coupling == "blend" else 0
    if len(parts["table"].arrays["worker_states"]) != row_count:
        raise ValueError(f"table/worker_states has other rows than {row_count}, those of overlap bodies")
    _check_last_step(parts["last_step"], sizes)
    _check_engines(parts["workers"], sizes)
    _check_values(parts, sizes)


def _check_last_step(part: PartState, sizes: Mapping[str, int]) -> None:
    replies = part.values["replies"]
    if not isinstance(replies, list):
        raise ValueError("last_step/replies is no list")
    rules: dict[str, Rule] = {}
    for i in range(len(replies)):
        _check_arrays(f"last_step/{i}", PartState(part.arrays).under(str(i)), REPLY, sizes)
        rules |= _under(str(i), REPLY)
    if part.arrays.keys() != rules.keys():
        raise ValueError("last_step has other replies than it says")


def _check_engines(part: PartState, sizes: Mapping[str, int]) -> None:
    names = {str(worker) for worker in range(sizes["workers"])}
    if part.arrays.keys() not in (set(), names):
        raise ValueError(
            f"workers has {', '.join(part.arrays) or 'nothing'}, expected the engine states of all workers"
        )
    for name, data in part.arrays.items():
        if data.dtype != np.uint8 or data.ndim != 1:
            raise ValueError(f"workers/{name} is no sequence of bytes")
        try:
            state = from_bytes(data)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"workers/{name}: {error}") from None
        _check_arrays(f"workers/{name}", vars(state), ENGINE, sizes)
        if len(to_bytes(state)) != len(data):
            raise ValueError(f"workers/{name} goes on behind its end")


def _check_arrays(
    part: str, arrays: Mapping[str, NDArray[Any]], rules: Mapping[str, Rule], sizes: Mapping[str, int]
) -> None:
    bound = dict(sizes)
    for name in (name for name in arrays if name not in rules):
        raise ValueError(f"{part}/{name} is nothing that is known")
    for name, rule in rules.items():
        if name in arrays:
            _check_array(f"{part}/{name}", arrays[name], rule, bound)
        elif not rule.optional:
            raise KeyError(f"{part}/{name}")


def _check_array(title: str, array: NDArray[Any], rule: Rule, sizes: dict[str, int]) -> None:
    if not (array.dtype.name in ("float32", "float64") if rule.dtype == "float" else array.dtype.name == rule.dtype):
        raise ValueError(f"{title} is of {array.dtype.name}, expected {rule.dtype}")
    if array.ndim != len(rule.shape):
        raise ValueError(f"{title} has {array.ndim} dimensions, expected {len(rule.shape)}")
    for size, symbol in zip(array.shape, rule.shape, strict=True):
        expected = symbol if isinstance(symbol, int) else sizes.setdefault(symbol, size)
        if size != expected:
            raise ValueError(f"{title} has the shape {array.shape}, expected {expected} where it has {size}")
    low, high = (sizes[end] if isinstance(end, str) else end for end in (rule.low, rule.high))
    if array.size and ((low is not None and array.min() < low) or (high is not None and array.max() >= high)):
        raise ValueError(f"{title} has numbers from {array.min()} to {array.max()}, expected {low} to {_last(high)}")
    if rule.is_ascending and (np.diff(array) <= 0).any():
        raise ValueError(f"{title} is not ascending")
    if rule.is_pairs:
        for a, b in array[(array[:, 0] == array[:, 1]) | (array < 0).all(axis=1)][:1]:
            raise ValueError(f"{title} has {a} with {b}, expected two bodies, or a body and a static one")


def _last(high: int | None) -> str:
    return "any" if high is None else str(high - 1)


def _check_workers(title: str, bits: NDArray[np.uint64], worker_count: int) -> None:
    allowed = np.zeros(bits.shape[1], np.uint64)
    for worker in range(worker_count):
        allowed[worker // WORD] |= np.uint64(1) << np.uint64(worker % WORD)
    if (bits & ~allowed).any():
        raise ValueError(f"{title} names workers beyond {worker_count - 1}")


def _check_rows(part: PartState) -> int:
    """Every overlap body has its rows, in order. Returns how many there are."""
    offset, bodies, workers = (part.arrays[name] for name in ("offset", "bodies", "worker"))
    if len(offset) != len(bodies) + 1 or offset[0] != 0 or offset[-1] != len(workers) or (np.diff(offset) < 0).any():
        raise ValueError("coupling/offset does not divide the rows among the bodies")
    try:
        validate_weights(offset, part.arrays["weight"])
    except AssertionError as error:
        raise ValueError(f"coupling/weight: {error}") from None
    return len(workers)


# ---- values ----------------------------------------------------------------------------------------------------------


def _is_count(value: Any, most: int | None = None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0 and (most is None or value < most)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _check_values(parts: Mapping[str, PartState], sizes: Mapping[str, int]) -> None:
    known = {field.name for field in fields(EngineState)}
    assert known == ENGINE.keys(), "an engine's state has other arrays than are checked"

    def is_reply(value: Any) -> bool:
        return isinstance(value, dict) and all(map(_is_number, value.values()))

    def is_failure(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) == 2
            and _is_count(value[0])  # its worker may have ended since
            and isinstance(value[1], list)
            and all(map(_is_count, value[1]))
        )

    def all_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
        return lambda value: isinstance(value, list) and all(map(check, value))

    checks: dict[str, dict[str, Callable[[Any], bool]]] = {
        "last_step": {"step_count": _is_count, "replies": all_of(is_reply)},
        "commands": {"iterations": lambda value: value is None or (_is_count(value) and value > 0)},
        "loads": {"last_repartition": _is_number, "duplicated": _is_number},
        "repartition": dict.fromkeys(
            ("wanted_count", "last_count"), lambda value: _is_count(value, sizes["workers"] + 1) and value > 0
        ),
        "elastic": dict.fromkeys(("least", "most", "looks"), _is_count),
        "recovery": {
            "failed_at": all_of(is_failure),
            **dict.fromkeys(("quarantined", "surged"), all_of(lambda value: _is_count(value, sizes["bodies"]))),
        },
        "coupling": {
            "is_settled": _is_bool,
            "cut_share": _is_number,
            "next_decision": _is_count,
            "apart": _is_count,
            "upward": _is_bool,
        },
    }
    for name, own in checks.items():
        for key, check in own.items():
            if key not in parts[name].values:
                if name == "coupling":
                    continue  # each coupling has some of them
                raise KeyError(f"{name}/{key}")
            if not check(parts[name].values[key]):
                raise ValueError(f"{name}/{key} is {parts[name].values[key]!r}")
