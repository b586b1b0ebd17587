"""Writes batches of a template's solutions as Jelly frames."""

from __future__ import annotations

from construct_messages.logs.by_message import ByMessage
from construct_messages.logs.jelly.encoder import JellyEncoder
from construct_messages.template import Template


class TemplateFrames(ByMessage):
    """Encodes batches of solutions."""

    def __init__(self, encoder: JellyEncoder, template: Template) -> None:
        super().__init__(encoder.encode, template)
