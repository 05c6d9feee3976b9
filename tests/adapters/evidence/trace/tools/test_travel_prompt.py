"""Commands of the prompt and their output."""

from pathlib import Path

import pytest

from stablecast.evidence.trace.tools.travel import TravelSession, WrongWordError, story


@pytest.fixture
def session(whole_world: Path) -> TravelSession:
    return TravelSession.open([whole_world])


def said(session: TravelSession, *lines: str) -> list[str]:
    told: list[str] = []
    assert session.run(lines, told.append) == 0
    return told


def test_one_goes_forward_and_back(session: TravelSession) -> None:
    first = said(session, "goto 0")
    assert said(session, "next") == said(session, "goto 1")
    assert said(session, "back") == first
    assert said(session, "n 3", "b 3")[-len(first) :] == first
    assert said(session, "next", "") == said(session, "goto 1", "goto 2")


def test_one_looks_at_another_endpoint(session: TravelSession) -> None:
    listed = said(session, "traces")
    assert len(listed) == len(session.traces)
    assert listed[0].startswith("*")
    said(session, "use 1")
    assert said(session, "traces")[1].startswith("*")


def test_one_finds_what_happened(session: TravelSession) -> None:
    source = next(at for at, trace in enumerate(session.traces) if trace.role == "source")
    assert any("Stable(" in line for line in said(session, f"use {source}", "find Stable"))
    there = session.at[source]
    seconds = session.trace.record(there).time / 1e9
    said(session, "goto 0", f"time {seconds:.9f}")
    assert session.at[source] >= there
    assert '"orders"' in said(session, "state config.topic")[0]
    assert "config" in said(session, "state")[0]


def test_one_asks_what_became_of_a_message(session: TravelSession) -> None:
    told = said(session, "why 3")
    assert told[0].startswith("message 3 of life")
    assert any("stable" in line for line in told)
    assert list(story(session.paths, 10**6)) == ["no trace has a message 1000000"]


@pytest.mark.parametrize("word", ["quit", "q"])
def test_quitting_ends_it(session: TravelSession, word: str) -> None:
    assert said(session, "help", word, "traces")[-1].endswith("quit, q")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("fly", "'fly' means nothing here"),
        ("goto x", "'x' is not a whole number"),
        ("goto 99999999", "there is no record"),
        ("use 99", "there is no endpoint 99"),
        ("find Unheard", "no record from here on"),
        ("state nothing.here", "there is no field 'nothing'"),
        ("state config.topic.more", "there is no field 'more' in it; there are: none"),
    ],
)
def test_an_unknown_command_is_reported_and_does_not_end_the_prompt(
    session: TravelSession, line: str, told: str
) -> None:
    heard: list[str] = []
    assert session.run([line, "traces"], heard.append) == 1
    assert told in heard[0]
    assert len(heard) > 1
    with pytest.raises(WrongWordError):
        list(session.do("fly"))
