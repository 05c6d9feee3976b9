"""Declare `stablecast model`: list the TLA+ models, check them, and compare them with the core."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.declarations import CommandGroup, Json, TracePaths
from stablecast.lab.prove.bounds import COMPOSED_SHORT, COMPOSED_STATES

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="Check the TLA+ models of the protocol and compare the core with them."
)

Names = Annotated[list[str] | None, typer.Argument(help="Models or configurations; default: all.")]
Models = Annotated[
    Path | None, typer.Option("--models", help="Directory of the models; default: tla/ of the checkout.")
]
Jar = Annotated[Path | None, typer.Option("--jar", envvar="TLA2TOOLS_JAR", help="The TLA+ checker, tla2tools.jar.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Number of processes; 0: one per core.", min=0)]


@app.command("list")
def list_command(names: Names = None, models: Models = None, as_json: Json = False) -> None:
    """List every configuration with its purpose, expected verdict and recorded graph."""
    from stablecast.lab.model import command

    raise typer.Exit(command.list_models(names or [], models, as_json))


@app.command("check")
def check_command(
    names: Names = None,
    models: Models = None,
    jar: Jar = None,
    as_json: Json = False,
) -> None:
    """Run the checker and compare its verdicts with the expected ones; print each counterexample step by step."""
    from stablecast.lab.model import command

    raise typer.Exit(command.check(names or [], models, jar, as_json))


@app.command("prove")
def prove_command(
    names: Annotated[list[str] | None, typer.Argument(help="Models with a proof; default: all.")] = None,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """Prove the guarantees for any number of stores, lives and messages, with two solvers."""
    from stablecast.lab.proof import command

    raise typer.Exit(command.prove(names or [], jobs, as_json))


@app.command("tie")
def tie_command(names: Names = None, models: Models = None, as_json: Json = False) -> None:
    """Compare the proofs with the recorded graphs of the core, both ways and without a solver."""
    from stablecast.lab.proof import command

    raise typer.Exit(command.tied(names or [], models, as_json))


@app.command("composed")
def composed_command(
    names: Annotated[list[str] | None, typer.Argument(help="Variants; default: all.")] = None,
    states: Annotated[
        int, typer.Option("--states", help="States to explore, over all variants.", min=1)
    ] = COMPOSED_STATES,
    as_json: Json = False,
) -> None:
    """Explore one whole system of the core with all faults, and check the guarantees in every state."""
    from stablecast.lab.prove import composed

    raise typer.Exit(composed.run(states, names or [], as_json))


@app.command("uncovered")
def uncovered_command(names: Names = None, models: Models = None, as_json: Json = False) -> None:
    """List functions and branches of the core that graphs do not run, with reasons; default: some of each model."""
    from stablecast.lab.model import command
    from stablecast.lab.prove.composed import explore

    raise typer.Exit(command.unused(names or [], models, as_json, lambda: explore(COMPOSED_SHORT)))


@app.command("trace")
def trace_command(
    paths: TracePaths,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Model to compare with; default: all. Repeatable.")
    ] = None,
    models: Models = None,
    as_json: Json = False,
) -> None:
    """Judge traces by the rules and by the steps of the models."""
    from stablecast.lab.model import trace_checks

    raise typer.Exit(trace_checks.trace(paths, tuple(model or ()), models, as_json))


@app.command("views")
def views_command(
    models: Models = None,
    record: Annotated[bool, typer.Option("--record", help="Generate the views again from the graphs.")] = False,
    as_json: Json = False,
) -> None:
    """List the views that traces are compared with, and how many steps of each the models have."""
    from stablecast.lab.model import trace_checks

    raise typer.Exit(trace_checks.views(models, record, as_json))


@app.command("graph")
def graph_command(
    name: str,
    output: Annotated[Path, typer.Option("--output", "-o", help="Compressed file to write.")],
    models: Models = None,
    jar: Jar = None,
) -> None:
    """Write the state graph of a configuration in canonical form: the core's, or with --jar the checker's."""
    from stablecast.lab.model import command

    raise typer.Exit(command.write_graph(name, output, models, jar))


@app.command("equal")
def equal_command(
    names: Names = None,
    models: Models = None,
    jar: Jar = None,
    jobs: Jobs = 0,
    record: Annotated[bool, typer.Option("--record", help="Record the digests of equal graphs; needs --jar.")] = False,
    as_json: Json = False,
) -> None:
    """Explore the core and compare its state graphs with those of the models, state by state and edge by edge."""
    from stablecast.lab.model import command

    raise typer.Exit(command.compare(names or [], models, jar, jobs, record, as_json))
