"""`--help`: options of Params in groups, every name in full at 80 columns, nothing imported that is not needed."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from lapjoint import Params
from lapjoint.cli import COMMANDS, app, load_command
from lapjoint.params.fields import GROUPS
from lapjoint.params.options import fields_of

OF_RUN = [
    "--steps",
    "--seconds",
    "--workers",
    "--growth-depth",
    "--search-depth",
    "--partition",
    "--runtime",
    "--address",
    "--coupling",
    "--detect",
    "--balance",
    "--load",
    "--linger",
    "--repartition",
    "--weights",
    "--algorithms",
    "--validate",
    "--size",
    "--seed",
    "--keyframe",
    "--engine",
    "--precision",
    "--solver",
    "--sleep",
    "--slide-speed",
    "--substeps",
    "--tolerance",
    "--max-substeps",
    "--joints",
    "--timestep",
    "--iterations",
    "--no-wait",
    "--on-failure",
    "--hang-limit",
    "--quarantine",
    "--on-surge",
    "--speed-limit",
    "--json",
    "--picture",
    "--record",
    "--record-every",
    "--record-contacts",
    "--measure",
    "--one-step-every",
    "--checkpoint",
    "--checkpoint-every",
    "--checkpoint-keep",
    "--view",
    "--host",
    "--port",
    "--fps",
    "--balls",
    "--no-browser",
    "--help",
]


def page(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "80"}, catch_exceptions=False)
    assert result.exit_code == 0
    return str(result.stdout)


def names_of(command: str) -> list[str]:
    params = load_command(command).params
    shown = (option for option in params if option.param_type_name == "option" and not getattr(option, "hidden", False))
    return [name for option in shown for name in option.opts]


def test_run_has_the_options_that_it_always_had() -> None:
    assert sorted(re.findall(r"^[^\w-]{0,2}(?:-h, )?(--[\w-]+)", page("run"), re.MULTILINE)) == sorted(OF_RUN)


@pytest.mark.parametrize("command", COMMANDS)
def test_names_are_not_cut_and_lines_fit(command: str) -> None:
    text = page(command)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for name in names_of(command):
        assert re.search(rf"(?<![\w-]){name}(?![\w-])", text), name


def test_the_help_of_run_is_grouped() -> None:
    text = page("run")
    places = [
        text.find(f" {title} ") for title in ("Arguments", *(group.title for group in GROUPS), "Live view", "Options")
    ]
    assert -1 not in places
    assert places == sorted(places)
    assert text.splitlines()[0].endswith("run [OPTIONS] SCENE")


def test_options_are_those_of_params_with_their_defaults() -> None:
    text = " ".join(page("run").replace("│", " ").split())
    has_option = [field for field in fields_of(Params) if field.has_option]
    assert {field.name for field in fields_of(Params)} - {field.name for field in has_option} == {
        *("solver_rows", "length_unit", "mass_unit", "joint_erp", "contact_erp"),
        *("split_impulse", "keep_forces", "max_workers"),
        *("sleep_after", "sleep_speed", "sleep_spin"),
    }
    for field in has_option:
        option = "--" + field.name.replace("_", "-")
        assert f"{option} " in text
        if field.default_text is not None:
            help_of_it = text[text.index(f" {option} ") :]
            assert f"[default: {field.default_text}]" in help_of_it


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_their_first_lines(name: str) -> None:
    first = " ".join(load_command(name).help.split("\n\n")[0].split())
    assert first.startswith(COMMANDS[name].removesuffix("."))
    assert COMMANDS[name] in page()


def test_no_arguments_are_help() -> None:
    result = CliRunner().invoke(app, [], env={"COLUMNS": "80"})
    assert "Usage: " in result.output
    assert "reproduce" in result.output


def test_the_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert re.fullmatch(r"lapjoint \d+\.\d+\.\d+\S*\n", result.stdout)


NEAR = {
    "rnu chain": "Did you mean 'run'?",
    "run chain --wrokers 2": "--workers",
    "run brigde": "no scene named 'brigde' (did you mean 'bridge'?); known scenes: ",
    "run chain --engine bulet": "no engine named 'bulet' (did you mean 'bullet'?)",
    "run chain --runtime proces": "no runtime named 'proces' (did you mean 'process'?)",
    "run chain --coupling tigth": "coupling is 'tigth', expected one of auto, blend, tight (did you mean 'tight'?)",
    "run chain --workers 2 --partition boxs": "no partition named 'boxs' (did you mean 'boxes'?)",
    "run chain --measure kinetic_enrgy": "no measure named 'kinetic_enrgy' (did you mean 'kinetic_energy'?)",
    "bench chain --peer mujocco": "no peer named 'mujocco' (did you mean 'mujoco'?)",
}


@pytest.mark.parametrize("command", NEAR)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(command: str) -> None:
    result = CliRunner().invoke(app, command.split(), env={"COLUMNS": "200"})
    assert result.exit_code != 0
    assert NEAR[command] in f"{result.output} {result.exception}"


@pytest.mark.slow
def test_help_and_a_run_import_only_what_they_need() -> None:
    code = """
import json, sys
from typer.testing import CliRunner
from lapjoint.cli import app
for command in (["--help"], ["run", "--help"], "run chain --size 4 --steps 1 --runtime inline".split()):
    assert CliRunner().invoke(app, command).exit_code == 0
print(json.dumps(list(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert not [name for name in loaded if name.startswith(("lapjoint.view", "lapjoint.studies.report"))]
    assert not {"viser", "moderngl", "PIL", "matplotlib", "zarr", "pandas"} & set(loaded)
