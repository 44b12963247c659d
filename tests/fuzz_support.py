"""Cases of fuzzing, each tried in a process with bounds: 10 s of CPU time, a gigabyte more than it has before.

`python tests/fuzz_support.py` reads cases, one line of JSON each, and answers with a line of JSON for each: what came
of it. Cases are tried one after the other in a child of that process; one that dies, hangs or fails, and one that has
tried many, is followed by another child. What it is tried on is in fuzz_targets.py.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

CPU_S = 10.0
IDLE_S = 300.0
"""How long a case may take while it does not even compute [s]: other programs may have all cores."""
MEMORY = 1 << 30
CASES_PER_CHILD = 250
MOST_TEXT = 1500
"""Letters of an error that somebody can read."""
CORPUS = Path(__file__).parent / "data" / "fuzz"


class Cases:
    """A process that tries cases."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        )

    def __enter__(self) -> Cases:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def seed_count(self, target: str) -> int:
        """How many files or messages there are to begin with."""
        return int(self._ask([target, -1, []]))

    def outcome(self, target: str, seed: int, changes: Sequence[Any]) -> str:
        """`accepted`, `refused: why`, or what went wrong."""
        return str(self._ask([target, seed, changes]))

    def _ask(self, case: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process that tries cases has ended"
        return json.loads(line)


def is_fine(outcome: str) -> bool:
    return outcome.split(":")[0] in ("accepted", "refused")


# ---- the process that watches ----------------------------------------------------------------------------------------


class Child:
    """A process that tries cases; forked, for all modules are loaded."""

    def __init__(self, target: Any) -> None:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the child
        (case_read, case_write), (answer_read, answer_write) = os.pipe(), os.pipe()
        self.tried = 0
        self.pid = os.fork()
        if self.pid == 0:
            os.close(case_write)
            os.close(answer_read)
            os.dup2(self.stderr.fileno(), 2)
            os.dup2(2, 1)
            try:
                _try_cases(target, case_read, answer_write)
            finally:
                os._exit(0)
        os.close(case_read)
        os.close(answer_write)
        self._cases, self._answers = case_write, answer_read

    def outcome(self, line: str) -> str:
        self.tried += 1
        self.stderr.seek(0, os.SEEK_END)
        os.write(self._cases, line.encode())
        start, idle = self._cpu_s(), time.monotonic()
        while not select.select([self._answers], [], [], 0.5)[0]:
            if self._cpu_s() - start > CPU_S:
                return f"hangs: more than {CPU_S:g} s of CPU time{self._where()}"
            if time.monotonic() - idle > IDLE_S:
                return f"hangs: more than {IDLE_S:g} s{self._where()}"
        answer = b""
        while not answer.endswith(b"\n"):
            part = os.read(self._answers, 1 << 16)
            if not part:
                _, status = os.waitpid(self.pid, 0)
                self.pid = 0
                return f"dies: {_how(status)}\n{self._printed()}"
            answer += part
        return str(json.loads(answer))

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _where(self) -> str:
        os.kill(self.pid, signal.SIGUSR1)
        time.sleep(0.5)
        return "\n" + self._printed()

    def _printed(self) -> str:
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")[-6000:]

    def end(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._cases)
        os.close(self._answers)
        self.stderr.close()


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"


def main() -> None:
    from fuzz_targets import TARGETS

    targets: dict[str, Any] = {}
    children: dict[str, Child] = {}
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        name, seed, _ = json.loads(line)
        if name not in targets:
            targets[name] = TARGETS[name]()
        if seed < 0:
            print(json.dumps(len(targets[name].seeds)), file=answers, flush=True)
            continue
        if name not in children:
            _end(children)  # one at a time
            children[name] = Child(targets[name])
        outcome = children[name].outcome(line)
        print(json.dumps(outcome), file=answers, flush=True)
        if children[name].tried >= CASES_PER_CHILD or not is_fine(outcome):
            _end(children)
    _end(children)
    for target in targets.values():
        target.close()


def _end(children: dict[str, Child]) -> None:
    for child in children.values():
        child.end()
    children.clear()


# ---- the process that tries ------------------------------------------------------------------------------------------


def _try_cases(target: Any, cases: int, answers: int) -> None:
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which maps terabytes, of which it uses few
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    threads: list[str] = []
    threading.excepthook = lambda caught: threads.append(
        "".join(traceback.format_exception(caught.exc_type, caught.exc_value, caught.exc_traceback))
    )
    gc.collect()
    gc.freeze()
    for line in os.fdopen(cases, "r"):
        gc.collect()  # what cases before have mapped is no memory of this one
        _, seed, changes = json.loads(line)
        outcome = _outcome(target, seed, [tuple(change) for change in changes])
        if threads:
            outcome, threads = f"a thread fails: {''.join(threads)}", []
        shown = outcome if len(outcome) < 6000 else f"{outcome[:1000]} ... {outcome[-5000:]}"
        os.write(answers, (json.dumps(shown) + "\n").encode())


def _outcome(target: Any, seed: int, changes: list[Any]) -> str:
    from lapjoint import LapjointError

    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            target.attempt(seed, changes, Path(folder))
    except (LapjointError, *target.refusals) as error:
        text = str(error)
        if target.is_shown and ("Traceback (most recent call last)" in text or not 0 < len(text) < MOST_TEXT):
            return f"refuses unclearly: {type(error).__name__}: {text}"
        return f"refused: {type(error).__name__}: {text}"
    except BaseException as error:
        return f"fails: {''.join(traceback.format_exception(error))}"
    return "accepted"


if __name__ == "__main__":
    main()
