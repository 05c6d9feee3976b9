"""Examples of all commands, for their help and manual pages, and the first words of the program."""

from typing import Final

START: Final = """\
stablecast: persistent publish/subscribe. The store stands beside the data path, not in it.

  stablecast demo              see crashes of every process, and that nothing is lost: one minute
  stablecast up                run a local cluster; it prints what to type next
  stablecast receive TOPIC     print each message
  stablecast send TOPIC        send each line that you type
  stablecast verify DIRECTORY  judge what happened, from traces

`stablecast --help` lists all commands. `stablecast COMMAND --help` has an example of each.
"""
"""The five commands that a user needs first."""

EXAMPLES: Final[dict[str, str]] = {
    "demo": "stablecast demo --messages 100 --seconds 4",
    "up": "stablecast up --stores 3",
    "send": "stablecast send orders --resolver 127.0.0.1:15380 --store 127.0.0.1:14567 --session-id 1",
    "receive": "stablecast receive orders --resolver 127.0.0.1:15380 --session-id 2",
    "read": "stablecast read orders --store 127.0.0.1:14567 --since 'last 10'",
    "replay": "stablecast replay orders --store 127.0.0.1:14567 --into orders-again --speed 10",
    "archive": "stablecast archive orders --output archive/orders --store 127.0.0.1:14567",
    "topics": "stablecast topics --store 127.0.0.1:14567",
    "store": "stablecast store data --new",
    "store run": "stablecast store run stores.toml --new",
    "store inspect": "stablecast store inspect data",
    "store scrub": "stablecast store scrub data",
    "store export": "stablecast store export data --output orders.jsonl.zst --first 0 --last 99",
    "store evict": "stablecast store evict data 2918913081 --yes",
    "store drain": "stablecast store drain http://127.0.0.1:15304/stores/0",
    "store resume": "stablecast store resume http://127.0.0.1:15304/stores/0",
    "store downgrade-check": "stablecast store downgrade-check data --to 0.1.0",
    "store recover": "stablecast store recover data",
    "store replace": "stablecast store replace data",
    "store restore": "stablecast store restore data",
    "store roll": "stablecast store roll store1:15304 store2:15304 store3:15304",
    "check": "stablecast check stores.toml um.cfg",
    "plan": "stablecast plan stores.toml --sources 100 --receivers 3",
    "top": "stablecast top http://127.0.0.1:15304",
    "fleet": "stablecast fleet store1:15304 store2:15304 store3:15304",
    "lbmrd": "stablecast lbmrd --listen 127.0.0.1:15380",
    "router": "stablecast router router.xml",
    "srs": "stablecast srs --interface 127.0.0.1",
    "incident": "stablecast incident traces logs --html incident.html",
    "verify": "stablecast verify traces --report verdict.html",
    "watch": "stablecast watch traces --state watch.json --metrics 127.0.0.1:15390",
    "rules": "stablecast rules S1",
    "trace": "stablecast trace why 7 traces",
    "trace dump": "stablecast trace dump traces --json",
    "trace diff": "stablecast trace diff traces-before traces-after",
    "trace analyze": "stablecast trace analyze traces",
    "trace prune": "stablecast trace prune traces --output small",
    "trace why": "stablecast trace why 7 traces",
    "trace open": "stablecast trace open traces",
    "whatif": "stablecast whatif traces --set ume_flight_size=500",
    "capture": "stablecast capture decode trouble.pcapng",
    "capture decode": "stablecast capture decode trouble.pcapng --port store=14568",
    "capture doctor": "stablecast capture doctor trouble.pcapng",
    "sim": "stablecast sim --seeds 2000",
    "prove": "stablecast prove um.cfg --faults wipe",
    "model": "stablecast model equal Stability",
    "model list": "stablecast model list",
    "model check": "stablecast model check Stability --jar tla2tools.jar",
    "model composed": "stablecast model composed --states 12000",
    "model prove": "stablecast model prove --json",
    "model tie": "stablecast model tie",
    "model uncovered": "stablecast model uncovered ResolutionPhases",
    "model trace": "stablecast model trace traces",
    "model views": "stablecast model views",
    "model graph": "stablecast model graph Stability/graph --output graph.zst",
    "model equal": "stablecast model equal Stability",
    "testing": "stablecast testing from-traces traces --output test_incident.py --application shop:main",
    "testing from-traces": (
        "stablecast testing from-traces traces --output test_incident.py --application shop:main --check checks:check"
    ),
    "manual": "stablecast manual build/man/man1",
}
"""An example of each command, by its words without the program. A test parses them."""
