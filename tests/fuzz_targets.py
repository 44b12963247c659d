"""All that fuzzing is tried on, by name."""

from __future__ import annotations

from collections.abc import Callable

from fuzz_files import CheckpointFiles, OtherFiles, Recordings, SceneFiles, UsdFiles
from fuzz_machines import HostLetters, MailFrames, ServerLetters
from fuzz_pages import PageHeads, PageMessages
from fuzz_scenes import Target
from fuzz_workers import WorkerMessages, WorkerReplies

TARGETS: dict[str, Callable[[], Target]] = {
    "scenes": SceneFiles,
    "other files": OtherFiles,
    "usd files": UsdFiles,
    "checkpoints": CheckpointFiles,
    "recordings": Recordings,
    "commands": WorkerMessages,
    "replies": WorkerReplies,
    "host letters": HostLetters,
    "server letters": ServerLetters,
    "mail frames": MailFrames,
    "page heads": PageHeads,
    "page messages": PageMessages,
}
