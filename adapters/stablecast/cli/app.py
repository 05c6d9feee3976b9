"""The commands and their options; what they do lives in a module of each command's name, imported when it is run.

So `--help` and a mistyped option answer at once, and nobody pays for a command that is not used.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from stablecast.cli import capture, model, prove, store, store_subcommands, trace, whatif
from stablecast.cli.group import Group
from stablecast.config.option_names import MAX_SESSION_ID, PROFILES, SAFE

ORDER = (
    *("demo", "up", "send", "receive"),
    *("store", "check", "top", "lbmrd", "srs", "strategies"),
    *("verify", "rules", "trace", "whatif", "capture"),
    *("sim", "prove", "model"),
)
"""The commands as help lists them: to try, to run, to look into what happened, to be sure."""


class Commands(Group):
    """All commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of `ORDER`."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Persistent publish/subscribe in which the store stands beside the data path.",
)

app.add_typer(model.app, name="model")
app.add_typer(capture.app, name="capture")
app.add_typer(store.app, name="store")
app.add_typer(trace.app, name="trace")
app.command("check")(store.check_command)
app.command("top")(store_subcommands.top)
store_subcommands.attach(store.app)
app.command("prove")(prove.prove_command)
app.command("whatif")(whatif.whatif_command)


def _tell_version(asked: bool) -> None:
    if asked:
        from stablecast.cli import version

        typer.echo(version.text())
        raise typer.Exit


@app.callback()
def every_command(
    tls: Annotated[
        Path | None, typer.Option("--tls", help="Directory with certificates: TLS on every TCP path, of all processes.")
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback has answered
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_version, help="Say which release and form this is."),
    ] = False,
) -> None:
    """Persistent publish/subscribe in which the store stands beside the data path."""
    if tls is not None:
        from stablecast.runtime.tls import use

        use(tls)


Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Resolvers = Annotated[
    list[str] | None, typer.Option("--resolver", help="ip:port of an lbmrd relay; may be given several times.")
]
Services = Annotated[
    list[str] | None,
    typer.Option("--resolver-service", help="host:port of an SRS; beside or instead of relays, several times."),
]
Strategy = Annotated[str, typer.Option("--strategy", help="How topics are resolved; see `stablecast strategies`.")]
Multicast = Annotated[
    str,
    typer.Option(
        "--multicast",
        help="Resolve in a multicast group on this interface: address, network, device; 0.0.0.0: the first. "
        "Group and port: -o resolver_multicast_address=..., -o resolver_multicast_port=...",
    ),
]
Interface = Annotated[
    str, typer.Option("--interface", "-i", help="Address of this host that peers connect to, or its network.")
]
Profile = Annotated[str, typer.Option("--profile", help=f"Defaults of the options: {', '.join(PROFILES)}.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="name=value of a documented option; several times.")
]
Statistics = Annotated[bool, typer.Option("--statistics", help="At the end the counters of each session, as JSON.")]
Trace = Annotated[Path | None, typer.Option("--trace", help="Directory for traces.")]
Session = Annotated[
    int, typer.Option("--session-id", help="Stands for registration IDs; 0: none.", min=0, max=MAX_SESSION_ID)
]


@app.command("demo")
def demo_command(
    messages: Annotated[int, typer.Option(help="Messages to send.", min=20, max=100_000)] = 400,
    seconds: Annotated[float, typer.Option(help="How long sending takes, crashes aside.", min=1, max=3600)] = 8,
    seed: Annotated[int, typer.Option(help="Fixes the instants of the crashes.")] = 1,
    keep: Annotated[Path | None, typer.Option(help="Keep stores, traces and logs in this new directory.")] = None,
    as_json: Json = False,
) -> None:
    """Run the guide's failure runs on loopback with real crashes, and judge them at the end."""
    from stablecast.lab.demo import show

    raise typer.Exit(show.run(messages, seconds, seed, keep, as_json))


@app.command("up")
def up_command(
    stores: Annotated[int, typer.Option(help="How many stores.", min=1, max=9)] = 3,
    directory: Annotated[Path, typer.Option(help="Where the stores keep their files.")] = Path("stablecast-data"),
    as_json: Json = False,
) -> None:
    """Run a local cluster: one lbmrd and some stores, until interrupted."""
    from stablecast.cli import cluster

    raise typer.Exit(cluster.run(stores, directory, as_json))


@app.command("lbmrd")
def lbmrd_command(
    config: Annotated[Path | None, typer.Argument(help="An XML file; see spec/resolution.md.")] = None,
    listen: Annotated[str | None, typer.Option(help="ip:port to listen at; port 0: any.")] = None,
    interface: Annotated[str | None, typer.Option("--interface", "-i", help="Address, network or device.")] = None,
    port: Annotated[int | None, typer.Option("--port", "-p", help="Port; 0: any.", min=0, max=65_535)] = None,
    activity: Annotated[int | None, typer.Option("--activity", "-a", help="ms between checks.", min=1)] = None,
    ttl: Annotated[int | None, typer.Option("--ttl", "-t", help="Seconds a silent client is kept.", min=1)] = None,
    log: Annotated[Path | None, typer.Option("--log", "-L", help="A file; default: standard error.")] = None,
    receive_buffer: Annotated[int | None, typer.Option("-r", help="Bytes of the receive buffer.", min=0)] = None,
    send_buffer: Annotated[int | None, typer.Option("-s", help="Bytes of the send buffer.", min=0)] = None,
    statistics: Annotated[float, typer.Option(help="Seconds between statistics in the log; 0: none.", min=0)] = 0,
    dump: Annotated[bool, typer.Option("--dump-dtd", "-d", help="Print the DTD of the file.")] = False,
    validate: Annotated[bool, typer.Option("--validate", "-v", help="Only check the configuration.")] = False,
    as_json: Json = False,
) -> None:
    """Run the unicast topic-resolution relay until interrupted."""
    from stablecast.cli import lbmrd

    job = lbmrd.LbmrdJob(
        config,
        listen,
        interface,
        port,
        activity,
        ttl,
        log,
        receive_buffer,
        send_buffer,
        statistics,
        dump,
        validate,
        as_json,
    )
    raise typer.Exit(lbmrd.run(job))


@app.command("srs")
def srs_command(
    config: Annotated[Path | None, typer.Argument(help="A TOML or XML file; see spec/srs.md.")] = None,
    interface: Annotated[str | None, typer.Option(help="Address or name to listen at.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen at; 0: any.", min=0, max=65_535)] = None,
    validate: Annotated[bool, typer.Option("--validate", "-v", help="Only check the configuration.")] = False,
    dump: Annotated[bool, typer.Option("--dump", "-d", help="Print the effective configuration.")] = False,
    dump_xsd: Annotated[bool, typer.Option("--dump-xsd", "-x", help="Print the schema of an XML file.")] = False,
    as_json: Json = False,
) -> None:
    """Run the stateful topic-resolution service until interrupted."""
    from stablecast.cli import srs

    if dump_xsd:
        raise typer.Exit(srs.dump_xsd())
    raise typer.Exit(srs.run(config, interface, port, validate=validate, dump=dump, as_json=as_json))


@app.command("strategies")
def strategies_command(
    topics: Annotated[int, typer.Option(help="Sources, each of a topic of its own.", min=1, max=10_000)] = 10,
    wanted: Annotated[int, typer.Option(help="Topics that have a receiver.", min=1, max=10_000)] = 10,
    loss: Annotated[int, typer.Option(help="Percent of the datagrams that are lost.", min=0, max=90)] = 0,
    as_json: Json = False,
) -> None:
    """Show what each strategy of topic resolution costs, and whether it survives an outage; in virtual time."""
    from stablecast.cli import strategies

    raise typer.Exit(strategies.run(topics, min(topics, wanted), loss, as_json))


@app.command("send")
def send_command(
    topic: str,
    store: Annotated[list[str] | None, typer.Option("--store", "-s", help="ip:port[:regid]; several times.")] = None,
    resolver: Resolvers = None,
    service: Services = None,
    strategy: Strategy = "safe",
    multicast: Multicast = "",
    interface: Interface = "127.0.0.1",
    session_id: Session = 0,
    file: Annotated[Path | None, typer.Option(help="Send its lines; default: standard input.")] = None,
    option: Options = None,
    profile: Profile = SAFE,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for enough stores.", min=0)] = 10,
    linger: Annotated[float, typer.Option(help="Seconds to stay after the last message is stable.", min=0)] = 1,
    trace: Trace = None,
    statistics: Statistics = False,
    as_json: Json = False,
) -> None:
    """Send lines as messages and wait until they are stable."""
    from stablecast.cli import send
    from stablecast.cli.client_options import Joining

    joining = Joining(
        resolver or [], service or [], strategy, multicast, interface, session_id, option or [], profile, trace
    )
    job = send.Job(topic, store or [], joining, file, timeout, linger, as_json, statistics)
    raise typer.Exit(send.run(job))


@app.command("receive")
def receive_command(
    topic: str,
    resolver: Resolvers = None,
    service: Services = None,
    strategy: Strategy = "safe",
    multicast: Multicast = "",
    interface: Interface = "127.0.0.1",
    source: Annotated[str | None, typer.Option(help="ip:port of the source's stream, instead of a resolver.")] = None,
    session_id: Session = 0,
    count: Annotated[int, typer.Option(help="End after so many messages; 0: never.", min=0)] = 0,
    option: Options = None,
    profile: Profile = SAFE,
    trace: Trace = None,
    statistics: Statistics = False,
    as_json: Json = False,
) -> None:
    """Print messages as they come; acknowledged once printed."""
    from stablecast.cli import receive
    from stablecast.cli.client_options import Joining

    joining = Joining(
        resolver or [], service or [], strategy, multicast, interface, session_id, option or [], profile, trace
    )
    if source is None and not joining.finds():
        places = "--resolver ip:port, --resolver-service host:port, --multicast interface or --source ip:port"
        raise typer.BadParameter(f"nothing says where sources are: give {places}")
    raise typer.Exit(receive.run(receive.Job(topic, joining, source, count, as_json, statistics)))


@app.command("sim")
def sim_command(
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 200,
    first: Annotated[int, typer.Option(help="The first one.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Processes; 0: one per core.", min=0)] = 0,
    wipe: Annotated[bool, typer.Option("--wipe", help="Stores may also lose their disks.")] = False,
    directory: Annotated[Path, typer.Option(help="Gets schedule and traces of failing seeds.")] = Path(
        "stablecast-sim"
    ),
    replay: Annotated[Path | None, typer.Option(help="Run this schedule again instead.")] = None,
    as_json: Json = False,
) -> None:
    """Run the endpoints in seeded worlds of crashes, partitions and lost writes, watched by independent checkers."""
    from stablecast.lab.sim import command as sim

    raise typer.Exit(sim.run_sim(sim.Options(seeds, first, jobs, wipe, directory), as_json, replay))


@app.command("verify")
def verify_command(
    paths: Annotated[list[Path], typer.Argument(help="Traces, directories of traces, patterns, or captures.")],
    master: Annotated[
        str | None,
        typer.Option(help="Judge on this Spark: local[*], spark://host:port; default: here if it is little."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write an HTML page with the verdicts and a timeline of each session.")
    ] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write the violations as a Parquet table into it.")] = None,
    port: Annotated[list[str] | None, typer.Option(help="Of captures, as for `capture decode`.")] = None,
    as_json: Json = False,
) -> None:
    """Replay traces through the same core, judge them and captures, and name who broke which rule."""
    from stablecast.cli import verify

    raise typer.Exit(verify.run(paths, as_json, master, report, parquet, port or []))


@app.command("rules")
def rules_command(
    rule: Annotated[str | None, typer.Argument(help="Id or name of one rule; default: all.")] = None,
    as_json: Json = False,
) -> None:
    """Print the rules that verify, sim and the models judge by, who judges each, and what to do when one is broken."""
    from stablecast.cli import rules

    raise typer.Exit(rules.run(rule, as_json))


def run() -> int:
    """Parse the command line and run the command; ends with the exit status, as SystemExit."""
    app()
    return 0
