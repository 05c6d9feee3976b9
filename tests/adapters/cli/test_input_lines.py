"""Lines as they come."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.cli import input_lines as module
from stablecast.cli.input_lines import lines


async def _all(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return [line async for line in lines(file.fileno())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"one", [b"one"]),
        (b"one\n", [b"one"]),
        (b"\n\n", [b"", b""]),
        (b"one\ntwo\r\n\nthree", [b"one", b"two\r", b"", b"three"]),
    ],
)
async def test_lines_of_a_file(text: bytes, expected: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(text)
    assert await _all(path) == expected


@given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=9), st.integers(1, 5))
def test_chunks_do_not_matter(whole: list[bytes], size: int) -> None:
    async def through_a_pipe() -> list[bytes]:
        reading, writing = os.pipe()
        os.write(writing, b"".join(line + b"\n" for line in whole))
        os.close(writing)
        try:
            return [line async for line in lines(reading)]
        finally:
            os.close(reading)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_BYTES", size)
        assert asyncio.run(through_a_pipe()) == whole


async def test_a_line_comes_before_the_end_of_the_file() -> None:
    reading, writing = os.pipe()
    try:
        found = lines(reading)
        os.write(writing, b"one\ntw")
        assert await anext(found) == b"one"
        os.write(writing, b"o\n")
        assert await anext(found) == b"two"
    finally:
        os.close(writing)
    with pytest.raises(StopAsyncIteration):
        await anext(found)
    os.close(reading)


async def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        await anext(lines(descriptor))
    os.close(descriptor)
