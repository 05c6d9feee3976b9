"""Build the site of the handbook, or write the outputs of its pages anew: `make site`, `make site-outputs`."""

import argparse
import sys
from collections.abc import Iterable

from tests.support.tree import name
from tools.site import assembly, links, pictures, playground, screenshots, snapshot
from tools.site.play import rewrite


def _report(kind: str, found: Iterable[str]) -> int:
    """Print what was found; return 1 if there was something."""
    lines = list(found)
    for line in lines:
        print(f"{kind}: {line}", file=sys.stderr)
    return int(bool(lines))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--outputs", action="store_true", help="write the outputs of the pages anew, and build nothing")
    parser.add_argument("--pictures", action="store_true", help="make the pictures of README and handbook anew")
    parser.add_argument("--pages", action="store_true", help="build without the page that runs the core")
    parser.add_argument("--first-click", type=int, metavar="TIMES", help="measure how soon the built page answers")
    parser.add_argument("--screenshots", action="store_true", help="save pictures of the built site")
    arguments = parser.parse_args()
    if arguments.outputs:
        rewrite()
        return 0
    if arguments.pictures:
        pictures.save()
        return 0
    if (arguments.first_click or arguments.screenshots) and not (assembly.OUTPUT / "play" / snapshot.FILE).exists():
        return _report("no site", [f"{name(assembly.OUTPUT)} has no page that runs the core: make site"])
    if arguments.first_click:
        for _ in range(arguments.first_click):
            seconds = snapshot.first_click(assembly.OUTPUT / "play") / 1000
            print(f"The page answers a click {seconds:.1f} s after it is opened.")
        return 0
    if arguments.screenshots:
        return _report("wider than its window", screenshots.save(assembly.OUTPUT))
    assembly.assemble()
    status = assembly.render()
    if not arguments.pages:
        playground.build(assembly.OUTPUT / "play")
        status |= _report("broken link", links.broken(assembly.OUTPUT))
    if not status:
        print(f"The site is in {name(assembly.OUTPUT)}: open {name(assembly.OUTPUT / 'index.html')}.")
    return status


if __name__ == "__main__":
    sys.exit(main())
