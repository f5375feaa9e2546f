"""What a chunk of a stream says: characters, tokens, usage, end marks.

Read are the chunks of OpenAI-compatible servers (chat, completions,
responses), Anthropic, Ollama, TGI and LangChain, as objects or dicts or as the
text of server-sent events; anything else counts as plain text. Reading never
raises and never changes the chunk.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

__all__ = ["ChunkInfo", "ChunkReader"]

_MAX_PENDING = 1 << 20
"""Characters of an unfinished SSE line that are kept; a longer line is not parsed."""

_SSE_FIELDS = ("data:", "event:", "id:", "retry:", ":")


@dataclass
class ChunkInfo:
    """What one chunk said."""

    characters: int = 0
    """Characters (Unicode code points) of generated text."""
    text: str = ""
    tokens: Optional[int] = None
    """Tokens in this chunk where the chunk lists them (token ids, log probabilities), else None."""
    input_tokens: Optional[int] = None
    """The server's own count for the whole request, where the chunk tells it."""
    output_tokens: Optional[int] = None
    """The server's own count for the whole answer so far."""
    finish_reason: Optional[str] = None
    done: bool = False
    """The chunk is, or contains, the protocol's end mark."""
    expects_end: bool = False
    """The protocol has an end mark, so a stream without one was cut off."""
    model: Optional[str] = None
    response_id: Optional[str] = None
    error: Optional[str] = None
    """An error that the server sent inside the stream."""
    separator: bool = False
    """The blank line between two SSE events, from an iterator of lines: not a chunk."""

    def add(self, other: ChunkInfo) -> None:
        """Merge the information of a further payload that came in the same chunk."""
        self.characters += other.characters
        self.text += other.text
        if other.tokens is not None:
            self.tokens = (self.tokens or 0) + other.tokens
        for name in ("input_tokens", "output_tokens", "finish_reason", "model", "response_id", "error"):
            value = getattr(other, name)
            if value is not None:
                setattr(self, name, value)
        self.done = self.done or other.done
        self.expects_end = self.expects_end or other.expects_end


class ChunkReader:
    """Reads the chunks of one stream, in order. Not safe for concurrent use."""

    def __init__(self) -> None:
        self._sse: Optional[bool] = None
        self._head = ""
        self._pending = ""
        self._lines: Optional[bool] = None
        self._overlong = False
        self._decoder: Optional[codecs.IncrementalDecoder] = None

    def read(self, chunk: Any) -> ChunkInfo:
        """Return what ``chunk`` says."""
        try:
            if isinstance(chunk, (bytes, bytearray, memoryview)):
                if self._decoder is None:
                    self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
                return self._read_text(self._decoder.decode(bytes(chunk)))
            if isinstance(chunk, str):
                return self._read_text(chunk)
            return _read_payload(chunk)
        except Exception:  # a chunk of an unknown form is still a chunk
            return ChunkInfo()

    def undecided(self) -> int:
        """Return the characters of a plain stream that ended as a prefix of an SSE field name."""
        return len(self._head)

    def _read_text(self, text: str) -> ChunkInfo:
        if self._sse is None and text.strip():
            text, self._head = self._head + text, ""
            start = text.lstrip()
            if any(field != start and field.startswith(start) for field in _SSE_FIELDS):
                self._head = text  # "da" may become "data:"; what comes next tells
                return ChunkInfo()
            self._sse = start.startswith(_SSE_FIELDS)
        if not self._sse:
            return ChunkInfo(characters=len(text), text=text)
        return self._read_sse(text)

    def _read_sse(self, text: str) -> ChunkInfo:
        if "\n" in text:
            self._lines = False
        if not self._pending and text in ("", "\n", "\r\n"):
            return ChunkInfo(separator=True)
        if "\n" not in text and (self._lines or self._is_line(text)):
            self._lines = True
            lines = [self._pending, text] if self._pending else [text]
            self._pending = ""
        else:
            *lines, self._pending = (self._pending + text).split("\n")
            if self._overlong and lines:
                lines, self._overlong = lines[1:], False
            if len(self._pending) > _MAX_PENDING:
                self._pending, self._overlong = "", True
        info = ChunkInfo()
        for line in lines:
            info.add(_read_line(line))
        return info

    def _is_line(self, text: str) -> bool:
        """Whether ``text``, which has no end of line, is a whole line all the same, from a line iterator."""
        if self._pending:
            return self._pending.startswith(_SSE_FIELDS) and text.startswith(_SSE_FIELDS[:4])
        data = text[5:].strip() if text.startswith("data:") else ""
        if data == "[DONE]":
            return True
        try:
            return data.startswith("{") and isinstance(json.loads(data), dict)
        except ValueError:
            return False


def _read_line(line: str) -> ChunkInfo:
    """Read one whole SSE line."""
    line = line.strip("\r\n ")
    if not line.startswith("data:"):
        return ChunkInfo()
    data = line[5:].strip()
    if data == "[DONE]":
        return ChunkInfo(done=True, expects_end=True)
    try:
        payload = json.loads(data)
    except ValueError:
        return ChunkInfo(characters=len(data), text=data)
    if isinstance(payload, Mapping):
        return _read_payload(payload)
    return ChunkInfo(characters=len(data), text=data)


def _get(source: Any, *names: str) -> Any:
    """Follow names through dicts and objects; None where one is missing."""
    for name in names:
        if source is None:
            return None
        if type(source) is dict or isinstance(source, Mapping):
            source = source.get(name)
        else:
            source = getattr(source, name, None)
    return source


def _text(value: Any) -> str:
    """Text of a content member: a string, or a list of parts with text."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return "".join(_text(part if isinstance(part, str) else _get(part, "text")) for part in value)
    return ""


def _count(value: Any) -> Optional[int]:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _first(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


def _read_payload(chunk: Any) -> ChunkInfo:
    info = ChunkInfo()
    choices = _get(chunk, "choices")
    if isinstance(choices, (list, tuple)):
        info.expects_end = True
        for choice in choices:
            _read_choice(choice, info)
        _read_usage(_get(chunk, "usage"), info)
    else:
        kind = _get(chunk, "type")
        if isinstance(kind, str) and ("." in kind or "_" in kind or kind in ("ping", "error")):
            _read_typed(chunk, kind, info)
        else:
            _read_other(chunk, info)
    for name, value in (("model", _get(chunk, "model")), ("response_id", _get(chunk, "id"))):
        if isinstance(value, str) and value:
            setattr(info, name, value)
    error = _get(chunk, "error")
    if error:
        info.error = str(_first(_get(error, "message"), error))[:500]
    info.characters = len(info.text)
    return info


def _read_choice(choice: Any, info: ChunkInfo) -> None:
    """An entry of ``choices``: OpenAI chat and completions, vLLM, SGLang, TGI's compatible end point."""
    delta = _first(_get(choice, "delta"), _get(choice, "message"))
    for value in (
        _get(delta, "content"),
        _first(_get(delta, "reasoning_content"), _get(delta, "reasoning")),
        _get(choice, "text"),
    ):
        info.text += _text(value)
    for call in _get(delta, "tool_calls") or ():
        info.text += _text(_get(call, "function", "arguments"))
    listed = _first(
        _get(choice, "token_ids"), _get(choice, "logprobs", "content"), _get(choice, "logprobs", "tokens")
    )
    if isinstance(listed, (list, tuple)):
        info.tokens = (info.tokens or 0) + len(listed)
    reason = _get(choice, "finish_reason")
    if reason:
        info.finish_reason = str(reason)
        info.done = True


def _read_typed(chunk: Any, kind: str, info: ChunkInfo) -> None:
    """Events with a ``type``: Anthropic messages and OpenAI responses."""
    info.expects_end = True
    delta = _get(chunk, "delta")
    if isinstance(delta, str) and kind.endswith(".delta"):
        info.text = delta
    elif kind == "content_block_delta":
        for name in ("text", "thinking", "partial_json"):
            info.text += _text(_get(delta, name))
    reason = _first(_get(delta, "stop_reason"), _get(chunk, "response", "incomplete_details", "reason"))
    if isinstance(reason, str):
        info.finish_reason = reason
    if kind in ("message_stop", "response.completed", "response.incomplete", "response.failed"):
        info.done = True
    for value in (_get(chunk, "response", "model"), _get(chunk, "message", "model")):
        if isinstance(value, str):
            info.model = value
    for value in (_get(chunk, "response", "id"), _get(chunk, "message", "id")):
        if isinstance(value, str):
            info.response_id = value
    usage = _first(_get(chunk, "usage"), _get(chunk, "response", "usage"), _get(chunk, "message", "usage"))
    _read_usage(usage, info)


def _read_other(chunk: Any, info: ChunkInfo) -> None:
    """Ollama, TGI and LangChain, told apart by their members."""
    token = _get(chunk, "token")
    if token is not None and _get(token, "text") is not None:
        info.text, info.tokens, info.expects_end = _text(_get(token, "text")), 1, True
        info.output_tokens = _count(_get(chunk, "details", "generated_tokens"))
        reason = _get(chunk, "details", "finish_reason")
        if reason is not None:
            info.finish_reason, info.done = str(reason), True
        return
    info.text = _text(
        _first(_get(chunk, "message", "content"), _get(chunk, "content"), _get(chunk, "response"))
    )
    if isinstance(_get(chunk, "done"), bool):
        info.expects_end, info.done = True, bool(_get(chunk, "done"))
        reason = _get(chunk, "done_reason")
    else:
        reason = _get(chunk, "response_metadata", "finish_reason")
    if isinstance(reason, str):
        info.finish_reason = reason
    _read_usage(_first(_get(chunk, "usage"), _get(chunk, "usage_metadata")), info)
    if info.output_tokens is None:
        info.input_tokens = _first(info.input_tokens, _count(_get(chunk, "prompt_eval_count")))
        info.output_tokens = _count(_get(chunk, "eval_count"))


def _read_usage(usage: Any, info: ChunkInfo) -> None:
    if usage is None:
        return
    info.input_tokens = _count(_first(_get(usage, "prompt_tokens"), _get(usage, "input_tokens")))
    info.output_tokens = _count(_first(_get(usage, "completion_tokens"), _get(usage, "output_tokens")))
