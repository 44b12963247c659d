"""Contacts of the last step: workers send them where something is decided by them, and else when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence

from ..engines import Contacts
from ..workers.engine_states import Send
from ..workers.messages import StepReply
from ..workers.questions import Question, ask
from ..workers.readings import CONTACTS


def fetch_contacts(replies: Sequence[StepReply], send: Send, worker_count: int, body_count: int) -> None:
    """Complete the replies of the last step with the contacts that workers have not sent. WorkerError if one does not
    answer."""
    if all(reply.has_contacts for reply in replies):
        return
    questions = [None if reply.has_contacts else Question(CONTACTS, {}) for reply in replies]
    questions += [None] * (worker_count - len(questions))  # of workers that have started since
    for reply, answer in zip(replies, ask(send, questions, body_count), strict=False):
        if answer is not None:
            reply.listed = Contacts(**answer)
