"""`stablecast model`: the models, what the checker says of them, and whether the core is equal to them."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.group import Group

app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Models of the protocols, and whether the code is equal to them."
)

Names = Annotated[list[str] | None, typer.Argument(help="Models or configurations; default: all.")]
Models = Annotated[Path | None, typer.Option("--models", help="The folder of models; default: tla/ of the checkout.")]
Jar = Annotated[Path | None, typer.Option("--jar", envvar="TLA2TOOLS_JAR", help="The checker, tla2tools.jar.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Processes; 0: one per core.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command("list")
def list_command(names: Names = None, models: Models = None, as_json: Json = False) -> None:
    """Name every configuration with its purpose, expected verdict, and what is on record of its graph."""
    from stablecast.lab.model import command

    raise typer.Exit(command.list_models(names or [], models, as_json))


@app.command("check")
def check_command(
    names: Names = None,
    models: Models = None,
    jar: Jar = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="Write the last counterexample as a trace, for `trace dump`.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the checker on configurations and compare its verdicts with the expected ones; counterexamples are told."""
    from stablecast.lab.model import checker_runs

    raise typer.Exit(checker_runs.check(names or [], models, jar, trace, as_json))


@app.command("trace")
def trace_command(
    paths: Annotated[list[Path], typer.Argument(help="Traces, directories of traces, or patterns.")],
    model: Annotated[list[str] | None, typer.Option("--model", help="A model; default: all that can be.")] = None,
    models: Models = None,
    jar: Jar = None,
    samples: Annotated[int, typer.Option("--samples", help="Samples of each view for the checker.", min=0)] = 2,
    as_json: Json = False,
) -> None:
    """Judge traces by the rules, and by the steps that the models have; with --jar the checker judges samples."""
    from stablecast.lab.model import trace_checks

    wanted = trace_checks.Wanted(tuple(model or ()), models, jar, samples, as_json)
    raise typer.Exit(trace_checks.trace(paths, wanted))


@app.command("views")
def views_command(
    models: Models = None,
    record: Annotated[bool, typer.Option("--record", help="Make them anew, from the graphs.")] = False,
    as_json: Json = False,
) -> None:
    """Name what traces are compared with: views of one endpoint, and how many steps the models have of each."""
    from stablecast.lab.model import trace_checks

    raise typer.Exit(trace_checks.views(models, record, as_json))


@app.command("graph")
def graph_command(
    name: str,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, compressed.")],
    models: Models = None,
    jar: Jar = None,
) -> None:
    """Write a configuration's graph in canonical form: the core's, or with --jar the checker's."""
    from stablecast.lab.model import command

    raise typer.Exit(command.write_graph(name, output, models, jar))


@app.command("equal")
def equal_command(
    names: Names = None,
    models: Models = None,
    jar: Jar = None,
    jobs: Jobs = 0,
    record: Annotated[bool, typer.Option("--record", help="Put equal graphs on record; needs the checker.")] = False,
    as_json: Json = False,
) -> None:
    """Explore the core and compare its graphs with the models', state by state and edge by edge."""
    from stablecast.lab.model import command

    raise typer.Exit(command.compare(names or [], models, jar, jobs, record, as_json))


@app.command("mutants")
def mutants_command(
    only: Annotated[str, typer.Argument(help="Part of the names of the faults to plant; default: all.")] = "",
    models: Models = None,
    as_json: Json = False,
) -> None:
    """Plant faults in the core, one by one: each must show in a graph or break an invariant."""
    from stablecast.lab.model import command

    raise typer.Exit(command.plant(only, models, as_json))
