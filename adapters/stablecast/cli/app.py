"""Declare the commands and their options. Each command imports its implementation when it runs.

The late imports keep `--help` and error messages fast.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from stablecast.cli import capture, model, prove, store, stored_topics, testing, trace, watch
from stablecast.cli.declarations import CommandGroup, Json, Profile, Trace, TracePaths
from stablecast.cli.examples import START
from stablecast.config.option_names import MAX_SESSION_ID, SAFE

ORDER = (
    *("demo", "up", "send", "receive", "read", "topics", "replay", "archive"),
    *("store", "check", "plan", "top", "fleet", "lbmrd", "srs", "router"),
    *("incident", "verify", "watch", "rules", "trace", "whatif", "capture"),
    *("sim", "prove", "model", "testing", "manual"),
)
"""Order of the commands in help: try it, run it, investigate a run, verify the protocol."""


class Commands(CommandGroup):
    """List the commands in the order of `ORDER`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, sorted by `ORDER`."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Persistent publish/subscribe messaging. Stores record messages beside the live path, not in it.",
)

app.add_typer(model.app, name="model")
app.add_typer(capture.app, name="capture")
app.add_typer(store.app, name="store")
app.add_typer(trace.app, name="trace")
app.add_typer(testing.app, name="testing")
app.command("check")(store.check_command)
app.command("top")(store.top_command)
app.command("fleet")(store.fleet_command)
app.command("read")(stored_topics.read_command)
app.command("topics")(stored_topics.topics_command)
app.command("replay")(stored_topics.replay_command)
app.command("archive")(stored_topics.archive_command)
app.command("prove")(prove.prove_command)
app.command("watch")(watch.watch_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from stablecast.text.release import release

        typer.echo(release())
        raise typer.Exit


@app.callback()
def every_command(
    ctx: typer.Context,
    tls: Annotated[
        Path | None, typer.Option("--tls", help="Use TLS on every TCP path, with certificates from this directory.")
    ] = None,
    version: Annotated[  # noqa: ARG001 - the callback handles it
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print the release."),
    ] = False,
) -> None:
    """Run persistent publish/subscribe messaging. Stores record messages beside the live path, not in it."""
    if tls is not None:
        from stablecast.runtime.tls import use

        use(tls)
    if ctx.invoked_subcommand is None:
        typer.echo(START, nl=False)


Resolvers = Annotated[list[str] | None, typer.Option("--resolver", help="ip:port of an lbmrd relay. Repeatable.")]
Services = Annotated[
    list[str] | None,
    typer.Option("--resolver-service", help="host:port of an SRS, with or without relays. Repeatable."),
]
Strategy = Annotated[str, typer.Option("--strategy", help="Strategy of topic resolution; see spec/resolution.md.")]
Multicast = Annotated[
    str,
    typer.Option(
        "--multicast",
        help="Resolve topics by multicast on this interface: an address, network or device; 0.0.0.0: the first one. "
        "Set group and port with -o resolver_multicast_address=... and -o resolver_multicast_port=...",
    ),
]
Interface = Annotated[
    str,
    typer.Option(
        "--interface", "-i", help="Address of this host that peers connect to, or its network; default: by route."
    ),
]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="name=value of a documented option. Repeatable.")
]
Configs = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", "-c", help="Option file, XML or TOML file with options, below those of the command. Repeatable."
    ),
]
Application = Annotated[str, typer.Option("--application", help="Application of XML files.")]
ContextName = Annotated[str, typer.Option("--context", help="Context of that application.")]
Statistics = Annotated[
    bool, typer.Option("--statistics", help="Print the counters of each transport session as JSON at the end.")
]
Session = Annotated[
    int,
    typer.Option(
        "--session-id", help="Session ID that stores map to registration IDs; 0: none.", min=0, max=MAX_SESSION_ID
    ),
]


@app.command("demo")
def demo_command(
    messages: Annotated[int, typer.Option(help="Messages to send.", min=20, max=100_000)] = 400,
    seconds: Annotated[
        float, typer.Option(help="Time to spread the sending over, in seconds, without the crashes.", min=1, max=3600)
    ] = 8,
    seed: Annotated[int, typer.Option(help="Seed of the crash times.")] = 1,
    keep: Annotated[Path | None, typer.Option(help="Keep stores, traces and logs in this new directory.")] = None,
    as_json: Json = False,
) -> None:
    """Run the guide's failure scenarios on loopback with real crashes, and judge the result."""
    from stablecast.lab.demo import run

    raise typer.Exit(run.run(messages, seconds, seed, keep, as_json))


@app.command("up")
def up_command(
    stores: Annotated[int, typer.Option(help="Number of stores.", min=1, max=9)] = 3,
    directory: Annotated[Path, typer.Option(help="Directory for the files of the stores.")] = Path("stablecast-data"),
    first_port: Annotated[
        int,
        typer.Option(
            help="Port of the relay; stores have the next ones. 0: as last time, at first as in the handbook.",
            min=0,
            max=65000,
        ),
    ] = 0,
    config: Annotated[
        list[Path] | None,
        typer.Option("--config", "-c", help="File of a client or a store daemon: run the daemons that it names."),
    ] = None,
    application: Application = "",
    context: ContextName = "",
    as_json: Json = False,
) -> None:
    """Run a local cluster until interrupted: one lbmrd and several stores, or the daemons that files name.

    A daemon that is killed starts again. One that ends by itself ends the cluster.
    """
    from stablecast.cli import cluster

    job = cluster.ClusterJob(stores, directory, as_json, config or [], application, context, first_port)
    raise typer.Exit(cluster.run(job))


@app.command("plan")
def plan_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Configurations of store daemons, and option files of clients; none: one default store."),
    ] = None,
    sources: Annotated[int, typer.Option(help="Sources of each topic pattern.", min=0, max=10_000_000)] = 1_000,
    topics: Annotated[int | None, typer.Option(help="Topics of these sources; default: one for each.", min=0)] = None,
    receivers: Annotated[int, typer.Option(help="Receivers of each source.", min=0, max=10_000)] = 1,
    profile: Profile = SAFE,
    as_json: Json = False,
) -> None:
    """Add up the memory, disk space and descriptors that stores need for a number of sources."""
    from stablecast.cli import plan
    from stablecast.config.capacity import Load

    load = Load(sources, sources if topics is None else topics, receivers)
    raise typer.Exit(plan.run(files or [], load, profile, as_json))


@app.command("manual")
def manual_command(
    directory: Annotated[Path, typer.Argument(help="Directory of the pages, for example /usr/local/share/man/man1.")],
) -> None:
    """Write the manual pages of all commands, made from their help."""
    from stablecast.cli import manual

    raise typer.Exit(manual.run(typer.main.get_command(app), directory))


@app.command("lbmrd")
def lbmrd_command(
    config: Annotated[Path | None, typer.Argument(help="XML configuration file; see spec/resolution.md.")] = None,
    listen: Annotated[str | None, typer.Option(help="ip:port to listen at; port 0: any free port.")] = None,
    interface: Annotated[
        str | None, typer.Option("--interface", "-i", help="Address, network or device to listen at.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", help="Port to listen at; 0: any free port.", min=0, max=65_535)
    ] = None,
    activity: Annotated[
        int | None, typer.Option("--activity", "-a", help="Milliseconds between checks for silent clients.", min=1)
    ] = None,
    ttl: Annotated[
        int | None, typer.Option("--ttl", "-t", help="Seconds until a silent client is removed.", min=1)
    ] = None,
    log: Annotated[Path | None, typer.Option("--log", "-L", help="Log file; default: standard error.")] = None,
    receive_buffer: Annotated[
        int | None, typer.Option("-r", help="Size of the receive buffer, in bytes.", min=0)
    ] = None,
    send_buffer: Annotated[int | None, typer.Option("-s", help="Size of the send buffer, in bytes.", min=0)] = None,
    statistics: Annotated[float, typer.Option(help="Seconds between statistics in the log; 0: never.", min=0)] = 0,
    dump: Annotated[bool, typer.Option("--dump-dtd", "-d", help="Print the DTD of the configuration file.")] = False,
    validate: Annotated[bool, typer.Option("--validate", "-v", help="Check the configuration and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Run the unicast topic-resolution relay until interrupted."""
    from stablecast.cli import resolution_daemons as daemons
    from stablecast.resolver.lbmrd.config import DTD

    if dump:
        raise typer.Exit(daemons.dump(DTD))
    overrides = {"port": port, "activity": activity, "log": log}
    overrides |= {"receive_buffer": receive_buffer, "send_buffer": send_buffer}
    settings = daemons.configured(config, listen, interface, ttl, overrides)
    raise typer.Exit(daemons.run_lbmrd(settings, statistics, validate=validate, as_json=as_json))


@app.command("srs")
def srs_command(
    config: Annotated[Path | None, typer.Argument(help="TOML or XML configuration file; see spec/srs.md.")] = None,
    interface: Annotated[str | None, typer.Option(help="Address or host name to listen at.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen at; 0: any free port.", min=0, max=65_535)] = None,
    validate: Annotated[bool, typer.Option("--validate", "-v", help="Check the configuration and exit.")] = False,
    dump: Annotated[bool, typer.Option("--dump", "-d", help="Print the effective configuration.")] = False,
    dump_xsd: Annotated[
        bool, typer.Option("--dump-xsd", "-x", help="Print the schema of XML configuration files.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the stateful topic-resolution service until interrupted."""
    from stablecast.cli import resolution_daemons as daemons
    from stablecast.resolver.srs.xml_config import XSD

    if dump_xsd:
        raise typer.Exit(daemons.dump(XSD))
    raise typer.Exit(daemons.run_srs(config, interface, port, validate=validate, dump=dump, as_json=as_json))


@app.command("router")
def router_command(
    config: Annotated[
        Path | None, typer.Argument(help="XML or TOML configuration file; see spec/router_daemon.md.")
    ] = None,
    dump: Annotated[bool, typer.Option("--dump-dtd", "-d", help="Print the document type and exit.")] = False,
    validate: Annotated[bool, typer.Option("--validate", "-v", help="Check the configuration file and exit.")] = False,
    detach: Annotated[
        bool, typer.Option("--detach", "-f", help="Run in a background process without a terminal.")
    ] = False,
    utc: Annotated[  # noqa: ARG001 - accepted, because scripts give it
        bool, typer.Option("--utc", "-u", help="Times of the log are UTC; they are with or without it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a router between domains until interrupted; a second interrupt ends the process at once."""
    from stablecast.cli import router
    from stablecast.cli.resolution_daemons import dump as print_schema
    from stablecast.router.router_files import DTD

    if dump:
        raise typer.Exit(print_schema(DTD))
    if config is None:
        raise typer.BadParameter("name the configuration file of a router")
    if validate:
        raise typer.Exit(router.validate(config, as_json))
    raise typer.Exit(router.run(router.RouterJob(config, detach, as_json)))


@app.command("send")
def send_command(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    message: Annotated[
        list[str] | None, typer.Argument(help="Messages to send; default: the lines of standard input.")
    ] = None,
    store: Annotated[list[str] | None, typer.Option("--store", "-s", help="ip:port[:regid]. Repeatable.")] = None,
    resolver: Resolvers = None,
    service: Services = None,
    strategy: Strategy = "safe",
    multicast: Multicast = "",
    interface: Interface = "",
    session_id: Session = 0,
    file: Annotated[Path | None, typer.Option(help="File whose lines are sent; default: standard input.")] = None,
    option: Options = None,
    config: Configs = None,
    application: Application = "",
    context: ContextName = "",
    profile: Profile = SAFE,
    timeout: Annotated[float, typer.Option(help="Seconds to wait until enough stores are registered.", min=0)] = 10,
    linger: Annotated[float, typer.Option(help="Seconds to wait after the last message is stable.", min=0)] = 1,
    trace: Trace = None,
    statistics: Statistics = False,
    as_json: Json = False,
) -> None:
    """Send the messages, or each line as one, and wait until all are stable."""
    from stablecast.cli import send
    from stablecast.cli.client_options import Participant

    given = (resolver or [], service or [], strategy, multicast, interface, session_id, option or [], profile, trace)
    participant = Participant(*given, config or [], application, context)
    if message and file is not None:
        raise typer.BadParameter("the messages are given twice: leave out the messages, or --file")
    job = send.SendJob(topic, store or [], participant, message or [], file, timeout, linger, as_json, statistics)
    raise typer.Exit(send.run(job))


@app.command("receive")
def receive_command(
    topic: Annotated[str, typer.Argument(help="The topic; none with --pattern.")] = "",
    pattern: Annotated[
        str, typer.Option("--pattern", help="Receive all topics that match this PCRE; print each topic, too.")
    ] = "",
    resolver: Resolvers = None,
    service: Services = None,
    strategy: Strategy = "safe",
    multicast: Multicast = "",
    interface: Interface = "",
    source: Annotated[str | None, typer.Option(help="ip:port of the source; no resolver is needed then.")] = None,
    session_id: Session = 0,
    group: Annotated[str, typer.Option(help="Share the topic among all receivers that name this group.")] = "",
    count: Annotated[int, typer.Option(help="Exit after this number of messages; 0: never.", min=0)] = 0,
    option: Options = None,
    config: Configs = None,
    application: Application = "",
    context: ContextName = "",
    profile: Profile = SAFE,
    trace: Trace = None,
    statistics: Statistics = False,
    as_json: Json = False,
) -> None:
    """Print each message and acknowledge it to the stores."""
    from stablecast.cli import receive
    from stablecast.cli.client_options import Participant
    from stablecast.config.checks import RESOLVERS

    if bool(topic) is bool(pattern) or (pattern and source is not None):
        raise typer.BadParameter("give a topic, or a pattern that finds topics and their sources: --pattern '^orders'")
    if group and (pattern or session_id):
        raise typer.BadParameter(
            "a group shares one topic under session ids of its own: give no pattern, no session id"
        )
    given = (resolver or [], service or [], strategy, multicast, interface, session_id, option or [], profile, trace)
    participant = Participant(*given, config or [], application, context)
    if source is None and not participant.resolves():
        places = "--resolver ip:port, --resolver-service host:port, --multicast interface or --source ip:port"
        raise typer.BadParameter(
            f"the receiver has no way to find sources: give {places}, or {RESOLVERS} in a file of --config"
        )
    job = receive.ReceiveJob(topic, participant, source, count, as_json, statistics, pattern, group)
    raise typer.Exit(receive.run(job))


@app.command("sim")
def sim_command(
    seeds: Annotated[int, typer.Option(help="Number of seeds.", min=1)] = 200,
    first: Annotated[int, typer.Option(help="First seed.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Number of processes; 0: one per core.", min=0)] = 0,
    whole: Annotated[bool, typer.Option("--whole", help="Run the shipped programs, not the bare endpoints.")] = False,
    wipe: Annotated[bool, typer.Option("--wipe", help="Lose and damage disks of stores in every world.")] = False,
    earlier: Annotated[
        int, typer.Option(help="Stores of release 0.1.0 in every world, as in an upgrade.", min=0, max=3)
    ] = 0,
    directory: Annotated[Path, typer.Option(help="Directory for failing seeds.")] = Path("stablecast-sim"),
    replay: Annotated[Path | None, typer.Option(help="Run this recorded schedule instead of seeds.")] = None,
    digests: Annotated[
        bool, typer.Option("--digests", help="Print a digest of each seed: of every input and all effects.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the protocol in a simulator of crashes, partitions and lost writes; independent checkers judge each seed."""
    if whole and wipe:
        raise typer.BadParameter("whole worlds always wipe disks: leave out --wipe, or --whole")
    if earlier and (whole or wipe):
        raise typer.BadParameter("worlds with earlier stores lose no disks and are not whole: leave out the others")
    if whole and digests:
        raise typer.BadParameter("whole worlds have no digests: leave out --digests, or --whole")
    from stablecast.lab.schedules.seeds import SeedRange

    options = SeedRange(seeds, first, jobs, directory)
    if whole:
        from stablecast.lab.whole.command import SIMULATOR

        raise typer.Exit(SIMULATOR.run(options, as_json, replay))
    from stablecast.lab.sim.command import Worlds, run_sim

    raise typer.Exit(run_sim(options, as_json, replay, Worlds(wipe, earlier, digests)))


@app.command("whatif")
def whatif_command(
    paths: TracePaths,
    options: Annotated[
        list[str] | None, typer.Option("--set", help="name=value of a source's option. Repeatable.")
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", help="name=value,value of a source's option; every combination is run. Repeatable."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master for a sweep: local[*], spark://host:port; default: no Spark.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run recorded sources again with other options; compare latency and the messages exposed to loss."""
    from stablecast.config.options import parse_options
    from stablecast.evidence.whatif import command

    swept = {name: str(values).split(",") for name, values in parse_options(sweep or []).items()}
    job = command.WhatIfJob(paths, parse_options(options or []), swept, master)
    raise typer.Exit(command.run(job, as_json))


@app.command("incident")
def incident_command(
    paths: Annotated[
        list[Path], typer.Argument(help="Traces, captures and logs, or directories of them, of all hosts.")
    ],
    threshold: Annotated[
        float, typer.Option(help="Wait of a message that is reported, in seconds.", min=0.01, max=86_400)
    ] = 1.0,
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML page.")] = None,
    port: Annotated[list[str] | None, typer.Option(help="Port of captures, as in `capture decode`.")] = None,
    as_json: Json = False,
) -> None:
    """Report what happened, by traces, captures and logs of several hosts: gaps, and their causes."""
    from stablecast.evidence.incident import command

    raise typer.Exit(command.run(command.IncidentRequest(paths, threshold, html, as_json, port or [])))


@app.command("verify")
def verify_command(
    paths: Annotated[list[Path], typer.Argument(help="Traces, directories of traces, patterns, or captures.")],
    master: Annotated[
        str | None,
        typer.Option(help="Spark master that judges: local[*], spark://host:port; default: no Spark for small inputs."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write an HTML report with the verdicts and a timeline of each session.")
    ] = None,
    parquet: Annotated[Path | None, typer.Option(help="Directory for a Parquet table of violations.")] = None,
    port: Annotated[list[str] | None, typer.Option(help="Port of captures, as in `capture decode`.")] = None,
    as_json: Json = False,
) -> None:
    """Replay traces through the core and judge captures; print every rule that was violated, and by which endpoint."""
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
    """Parse the command line and run the command. The exit status is raised as SystemExit."""
    app()
    return 0
