"""What the chunks of each dialect say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Optional

import pytest

from inquest._stream_chunks import ChunkReader
from test_streaming import openai


def read(*chunks: Any) -> tuple[int, Optional[int], Optional[int], bool]:
    reader, total = ChunkReader(), ChunkReader().read(None)
    for chunk in chunks:
        total.add(reader.read(chunk))
    return total.characters, total.tokens, total.output_tokens, total.done


@pytest.mark.parametrize(
    ("chunks", "want"),
    [
        (["plain ", "text"], (10, None, None, False)),
        (["d", "ata", " is text"], (12, None, None, False)),
        (["da", "ta: [DONE]\n"], (0, None, None, True)),
        (
            [
                {
                    "type": "message_start",
                    "message": {"id": "x", "usage": {"input_tokens": 3, "output_tokens": 1}},
                },
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "abc"}},
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": 7},
                },
                {"type": "message_stop"},
            ],
            (3, None, 7, True),
        ),
        (
            [
                {"type": "response.output_text.delta", "delta": "abcd"},
                {"type": "response.completed", "response": {"id": "r", "usage": {"output_tokens": 2}}},
            ],
            (4, None, 2, True),
        ),
        (
            [{"message": {"content": "ab"}, "done": False}, {"done": True, "eval_count": 4}],
            (2, None, 4, True),
        ),
        (
            [
                {"token": {"id": 1, "text": "a"}},
                {
                    "token": {"id": 2, "text": "b"},
                    "details": {"generated_tokens": 2, "finish_reason": "length"},
                },
            ],
            (2, 2, 2, True),
        ),
        (
            [SimpleNamespace(content="hey", type="AIMessageChunk", usage_metadata={"output_tokens": 1})],
            (3, None, 1, False),
        ),
        ([openai("x", logprobs={"content": [{"token": "x"}]})], (1, 1, None, False)),
        (
            [{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": '{"a":1}'}}]}}]}],
            (7, None, None, False),
        ),
        ([{"choices": [{"delta": {"content": [{"type": "text", "text": "ab"}]}}]}], (2, None, None, False)),
        (
            [None, 3, object(), {"choices": 5}, {"usage": {"completion_tokens": "many"}}],
            (0, None, None, False),
        ),
        (["data: {broken"], (0, None, None, False)),
        (["data: hello", "", "data: you", "data: [DONE]"], (8, None, None, True)),
        (["event: content_block_delta", 'data: {"type": "message_stop"}'], (0, None, None, True)),
        ([b"data: ", b'{"type": "message_stop"}', b"\n"], (0, None, None, True)),
        (["data: " + "x" * 3_000_000, "y\n", "data: [DONE]\n"], (0, None, None, True)),
        ([b"\xff\xfe", b"ab"], (4, None, None, False)),
    ],
)
def test_dialects(chunks: list[Any], want: tuple[Any, ...]) -> None:
    if isinstance(chunks[0], str) and len(chunks[0]) > 1_000_000:
        chunks = [chunks[0].replace("data: x", 'data: {"x'), *chunks[1:]]
    assert read(*chunks) == want
