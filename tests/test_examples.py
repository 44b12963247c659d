"""Every example runs to its own check, and so does the Python in the README."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_readme_shows_the_first_example() -> None:
    readme = (ROOT / "README.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    assert shown.strip() in (ROOT / "examples" / "01_tower.py").read_text()
