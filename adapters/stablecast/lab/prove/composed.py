"""Print what `stablecast model composed` finds: each variant of the fine world with all faults at once.

Exit status: 0 if every variant keeps its guarantees in every explored state, 1 if one does not.
"""

import resource
import time
from collections.abc import Iterator

import attrs

from stablecast.lab.prove import rules, story, twins
from stablecast.lab.prove.bounds import COMPOSED_STATES
from stablecast.lab.prove.search import Search
from stablecast.lab.prove.variants import VARIANTS, Variant
from stablecast.text.console import say


@attrs.frozen
class VariantResult:
    """Hold what was explored of a variant; `found` is the shortest run to a state that breaks a rule."""

    name: str
    purpose: str
    rules: list[str]
    states: int
    complete: bool
    twins: int
    seconds: float
    megabytes: int
    broken: str = ""
    why: str = ""
    found: tuple[story.StoryStep, ...] = ()


def explore(states: int = COMPOSED_STATES, names: list[str] | None = None) -> Iterator[VariantResult]:
    """Explore variants with their shares of the states; a variant whose states are fewer leaves the rest.

    Raises:
        ForgetfulError: the key of a state drops a fact that matters.
    """
    for one in VARIANTS:
        if not names or one.name in names:
            yield explored(one, max(1, states * one.share // 100))


def explored(variant: Variant, states: int) -> VariantResult:
    """Explore one variant, in seconds of this process."""
    began = time.process_time()
    world = variant.world(states)
    done = Search(world, variant.rules, stalls=False).run()
    compared = twins.compare(world) if done.loss is None else 0
    result = VariantResult(
        variant.name,
        variant.purpose,
        rules.letters(variant.rules),
        done.states,
        done.complete,
        compared,
        round(time.process_time() - began, 1),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )
    if done.loss is None or done.loss.loss is None:
        return result
    found = tuple(story.steps(world, done.loss))
    return attrs.evolve(result, broken=done.loss.loss.rule, why=story.ending(done.loss), found=found)


def run(states: int, names: list[str], as_json: bool) -> int:
    """Explore and print each variant when it is done; return the exit status."""
    known = [one.name for one in VARIANTS]
    unknown = [name for name in names if name not in known]
    if unknown:
        say(f"there is no variant {unknown[0]}: write {', '.join(known)}")
        return 2
    failed, total = False, 0
    for result in explore(states, names):
        failed, total = failed or bool(result.broken), total + result.states
        if as_json:
            say(attrs.asdict(result))
        else:
            _print(result)
    if not as_json:
        say(f"{total:,} states")
    return 1 if failed else 0


def _print(result: VariantResult) -> None:
    verdict = f"BREAKS {result.broken}: {result.why}" if result.broken else f"keeps {' '.join(result.rules)}"
    extent = "all" if result.complete else "the first"
    say(
        f"{result.name} ({result.purpose}): {verdict}; {extent} {result.states:,} states, {result.twins:,} steps of "
        f"twins, {result.seconds} s of CPU time, {result.megabytes} MB"
    )
    for text in story.lines(result.found):
        say(text)
