"""The example that drives the machines without asyncio."""

from pathlib import Path

from tests.examples.programs import example

STORY = """\
   0 ms  source sends to store: Register
   0 ms  store  writes: PersistClient
   0 ms  store  joins stream
   0 ms  store  sends to source: Registered
   0 ms  source reports: RegistrationSuccess
   0 ms  source broadcasts: SourceInfo
   0 ms  source reports: RegistrationComplete
   0 ms  store  writes: PersistClient
   0 ms  store  writes: PersistMessages
   0 ms  store  sends to source: StableAck
   0 ms  source reports: Stable
   0 ms  source reports: Stable
   0 ms  source reports: Reclaimed
   0 ms  source releases its copies below 3
 100 ms  source broadcasts: SourceInfo
 200 ms  source broadcasts: SourceInfo
 300 ms  source broadcasts: SourceInfo
stable through 2
"""


def test_the_story_is_always_the_same(tmp_path: Path) -> None:
    with example("embed.py", tmp_path) as embedded:
        assert embedded.end() == 0
        assert "\n".join(embedded.lines) + "\n" == STORY
