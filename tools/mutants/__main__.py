"""`python -m tools.mutants [NAME...]`: plant each fault, run its killer, and print each verdict and the kill rate.

`python -m tools.mutants --rows` plants the faults that tests of documented rows must find (`spec/rows.md`).

`python -m tools.mutants --gate [NAME...]` plants them against the gate alone. The killer is the named one if it is in
the gate, and otherwise the tests of the gate that belong to the changed file. A survivor is named with the killer that
finds it.

All killers run without a fault first. A killer that fails without a fault proves nothing.
"""

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import attrs

from stablecast.lab.model import catalog
from tests.support.changed import selected
from tests.support.tiers import GATE, GATE_STATES, has, tier
from tests.support.tree import ROOT
from tools.mutants.mutant import CORE, Graph, Mutant, Test, WholeWorlds, Worlds, run, run_tests
from tools.mutants.table import MUTANTS
from tools.rows.evidence import mutants_of_rows


def false_alarms(mutants: Sequence[Mutant]) -> list[str]:
    """Run the killers on the unchanged code and return the last line of each that fails."""
    core = CORE.parents[1]
    killers = {mutant.killer for mutant in mutants}
    tests = sorted((killer for killer in killers if isinstance(killer, Test)), key=str)
    worlds = {(killer.first, killer.count): killer for killer in killers if isinstance(killer, Worlds)}
    graphs = sorted((killer for killer in killers if isinstance(killer, Graph)), key=str)
    whole = {(one.first, one.count, one.traced): one for one in killers if isinstance(one, WholeWorlds)}
    others: list[Worlds | WholeWorlds | Graph] = [*worlds.values(), *whole.values(), *graphs]
    commands = [killer.command(core) for killer in others]
    if tests:
        commands.append(run_tests(core, *tests))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [line for status, line in pool.map(lambda command: run(command, core), commands) if status]


def in_gate(mutant: Mutant) -> Test | Worlds | WholeWorlds | Graph:
    """Return what finds the fault in the gate: the named killer, or the tests that belong to the file."""
    match mutant.killer:
        case Test(node=node) if tier(f"tests/{node}") == GATE:
            return mutant.killer
        case Graph(configuration=name) if catalog.load(catalog.folder())[name].digests.nodes <= GATE_STATES:
            return mutant.killer
        case Test() | Graph():
            file = (mutant.package / mutant.file).relative_to(ROOT).as_posix()
            return Test("", tuple(one for one in selected([file]) if has(one, GATE)))
        case worlds:  # The tests of the simulator and of whole worlds run such seeds.
            return worlds


def main(names: list[str]) -> int:
    """Plant all faults, the named ones, or with `--rows` those that tests of documented rows find.

    Return the exit status: 0 if every mutant was killed, 1 if one survived, 2 if the killers prove nothing.
    """
    gate = "--gate" in names
    names = [name for name in names if name != "--gate"]
    if names == ["--rows"]:
        names = mutants_of_rows()
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        print(f"there is no mutant {', '.join(sorted(unknown))}; the files of tools/mutants list them", file=sys.stderr)
        return 2
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    named = {mutant.name: mutant.killer for mutant in chosen}
    if gate:
        chosen = [attrs.evolve(mutant, killer=in_gate(mutant)) for mutant in chosen]
    alarms = false_alarms(chosen)
    if alarms:
        print(*(f"a killer fails without a fault: {line}" for line in alarms), sep="\n", file=sys.stderr)
        return 2
    began, survivors = time.monotonic(), 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, reason in zip(chosen, pool.map(Mutant.survival, chosen), strict=True):
            survivors += bool(reason)
            verdict = f"SURVIVED ({reason})" if reason else "killed"
            killer = named[mutant.name] if reason else mutant.killer
            print(f"{mutant.name:50} {mutant.module:34} {verdict:8} {killer}", flush=True)
    killed = len(chosen) - survivors
    seconds = time.monotonic() - began
    print(f"kill rate {100 * killed // len(chosen)} %: {killed} of {len(chosen)} mutants in {seconds:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
