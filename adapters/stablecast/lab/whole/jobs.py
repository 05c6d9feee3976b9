"""The jobs of the applications of a whole world, as mappings: addresses, identities, topics, pace and habits."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from stablecast.client import Receiver, Source, resolution
from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.whole.schedule import (
    FAR,
    FINDERS,
    LINKED_ROUTER,
    NEAR,
    RECEIVERS,
    ROUTER,
    ROUTERS,
    SECOND_RECEIVER,
    SECOND_SOURCE,
    SOURCE,
    WHOLE_BYTES,
    WorldSchedule,
)
from stablecast.lab.world import programs
from stablecast.lab.world.programs import TRACES, DaemonProgram, StoreProgram
from stablecast.lab.world.world import World

PATIENCE_SECONDS = 0.004
"""Time after which a hasty source cancels a send that waits."""

SLOW_SECONDS = 0.02
"""Time that a slow receiver needs for a message."""

SESSIONS: Mapping[str, int] = {SOURCE: 11, SECOND_SOURCE: 12, RECEIVERS[0]: 21, RECEIVERS[1]: 22, SECOND_RECEIVER: 23}
"""The identity of each client: its session id or its RegID."""


class JobWriter:
    """Writes the jobs of the clients of one world.

    Attributes:
        world, schedule: The world and what is to run there.
    """

    world: World
    schedule: WorldSchedule
    finders: tuple[str, ...]
    _stores: Mapping[str, StoreProgram | DaemonProgram]
    _traced: bool
    _owner: str

    def _job(self, name: str, host: str, members: list[Source | Receiver]) -> Mapping[str, Any]:
        """Return the job of a client that runs on a host. `members` gets its sources and receivers."""
        setup, address = self.schedule.setup, self.world.host(host).address
        job: dict[str, Any] = {
            "interface": address,
            "session": SESSIONS[name] if setup.ids == "session" else 0,
            "owner": self._owner if name == SOURCE else name,
            "topics": setup.topics,
            "resolution": {**self._resolution(name, address), "trace": TRACES if self._traced else None},
            "members": members,
        }
        if name in setup.sources:
            return job | self._source_job(name)
        if setup.group:
            job |= {"owner": RECEIVERS[0], "member": name, "session": 0, "group": True}
        mode = setup.modes[RECEIVERS.index(name)] if name in RECEIVERS else "plain"
        if setup.ids != "session":
            job["reg_id"] = SESSIONS[name] if setup.ids == "regid" else 0
        job["options"] = dict(setup.receiver_options)
        job |= {"stored": setup.stored, "pattern": setup.pattern, "start": setup.start, "hot": setup.hot}
        job["addresses"] = self._addresses(name)
        return job | {"mode": mode, "delay": SLOW_SECONDS if mode == "slow" else 0.0}

    def _source_job(self, name: str) -> dict[str, Any]:
        setup = self.schedule.setup
        stores, options = self._stores_of_the_source(name), dict(setup.options)
        if setup.named:
            reg_id = "" if setup.ids == "session" else f":{SESSIONS[SOURCE]}"
            stores, options["ume_store_name"] = [], " ".join(name + reg_id for name in self._stores)
        job: dict[str, Any] = {
            "stores": stores,
            "pause": setup.pause_ms / 1e3,
            "burst": setup.burst,
            "size": setup.size,
            "options": options,
            "again": True,
            "large": setup.size > WHOLE_BYTES and "transport" in dict(setup.options),
            "patience": PATIENCE_SECONDS if setup.hasty else None,
            "tick": partial(self._tick, setup.pause_ms * MILLISECOND) if setup.hot else None,
        }
        if setup.handles > 1:
            job |= {"handles": setup.handles, "sessions": [SESSIONS[name] + 100 * at for at in range(setup.handles)]}
        return job

    def _identities(self) -> dict[tuple[str, str], tuple[str, int]]:
        """Return the topic, and the session id or RegID, of the source of each owner and topic."""
        setup, found = self.schedule.setup, {}
        for name in setup.sources:
            owner = self._owner if name == SOURCE else name
            for at in range(setup.handles):
                for topic in setup.topics:
                    whose = f"{owner}/{at}" if setup.handles > 1 else owner
                    found[whose, topic] = topic, SESSIONS[name] + 100 * at
        return found

    def _tick(self, pause: int) -> int:
        """Return the hot number that is due now, in all programs alike."""
        return self.world.now // pause

    def _addresses(self, client: str) -> list[str]:
        """Return the addresses of all stores as a client names them: with the domain of those that are apart."""
        setup = self.schedule.setup
        return [
            f"{setup.domain(name)}:{address}" if setup.is_apart(client, name) else address
            for name, store in self._stores.items()
            for address in store.addresses
        ]

    def _stores_of_the_source(self, client: str) -> list[str]:
        """Return the addresses of the stores as the source names them, with RegIDs and groups if they are used."""
        setup = self.schedule.setup
        stores = self._addresses(client)
        groups = str(dict(setup.options).get("ume_store_group", ""))
        if groups:
            sizes = [int(group.partition(":")[2]) for group in groups.split(",")]
            of_store = [str(group) for group, size in enumerate(sizes) for _ in range(size)]
            return [f"{store}:0:{group}" for store, group in zip(stores, of_store, strict=True)]
        # A source has RegIDs for all starts unless it has a session id: a source with new ones would be another source.
        return stores if setup.ids == "session" else [f"{store}:{SESSIONS[SOURCE]}" for store in stores]

    def _is_service(self, name: str) -> bool:
        finder = self.schedule.setup.finder
        return finder in {"service", "services"} or (finder == "both" and name == FINDERS[1])

    def _finder_addresses(self, client: str) -> list[tuple[str, str]]:
        """Return the argument of a context and the address for each relay and service that a host reaches."""
        if self.schedule.setup.finder == "multicast":
            return []
        found = []
        for name in self.finders:
            if self.schedule.setup.is_apart(client, name):
                continue
            service = self._is_service(name)
            port = programs.SERVICE_PORT if service else programs.RELAY_PORT
            found.append(("resolver_service" if service else "resolver", f"{self.world.host(name).address}:{port}"))
        return found

    def _portals(self, router: str) -> dict[int, dict[str, object]]:
        """Return the options of the contexts of a router's portals, by domain."""
        options = {"resolver": "resolver_unicast_daemon", "resolver_service": "resolver_service"}
        places = [*zip((NEAR, FAR), self.finders, strict=True)]
        if self.schedule.setup.linked:
            places = [places[ROUTERS.index(router)]]
        return {domain: {options[kind]: at for kind, at in self._finder_addresses(name)} for domain, name in places}

    def _link(self, router: str) -> str:
        """Return the address of the router to which the one of the far domain is linked, which listens itself."""
        if not self.schedule.setup.linked:
            return ""
        return f"{self.world.host(ROUTER).address if router == LINKED_ROUTER else ''}:{programs.LINK_PORT}"

    def _resolution(self, name: str, address: str) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for kind, at in self._finder_addresses(name):
            given.setdefault(kind, []).append(at)
        if not given:
            given["resolution"] = resolution(options={"resolver_multicast_interface": address})
        if self.schedule.setup.named:
            given["store_names"] = dict(zip(self._stores, self._addresses(name), strict=True))
        return given
