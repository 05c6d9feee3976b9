"""The machines without asyncio."""

from pathlib import Path

from tests.examples.programs import example

STORY = """\
   0 ms  source tells store: Register
   0 ms  store  writes: PersistClient
   0 ms  store  joins stream
   0 ms  store  tells source: Registered
   0 ms  source reports: RegistrationSuccess
   0 ms  source tells everybody who joined: SourceInfo
   0 ms  source reports: RegistrationComplete
   0 ms  store  writes: PersistClient
   0 ms  store  writes: PersistMessages
   0 ms  store  tells source: StableAck
   0 ms  source reports: Stable
   0 ms  source reports: Stable
   0 ms  source reports: Reclaimed
   0 ms  source lets go of everything below 3
 100 ms  source tells everybody who joined: SourceInfo
 200 ms  source tells everybody who joined: SourceInfo
 300 ms  source tells everybody who joined: SourceInfo
stable through 2
"""


def test_the_story_is_always_the_same(tmp_path: Path) -> None:
    with example("embed.py", tmp_path) as embedded:
        assert embedded.end() == 0
        assert "\n".join(embedded.lines) + "\n" == STORY
