"""A router that serves: its machine, and the portals that perform what it decides."""

import asyncio
from typing import assert_never

from stablecast.core.errors import MisuseError, StablecastError
from stablecast.router.config import RouterConfig
from stablecast.router.peer_portal import PeerPortal
from stablecast.router.portal import PortalContext
from stablecast.router.snapshot import view_of
from stablecast.router.views import RouterView, Write
from stablecast.runtime import machine
from stablecast.runtime.driver import UntracedDriver, describe, report
from stablecast.runtime.logs import Severity
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.link_messages import Hello
from stablecast.transports.routing.portals import Drop
from stablecast.transports.routing.router import Router

DRAIN_SECONDS = 5.0
"""Time that closing waits until what was sent has left, and final advertisements with it."""

LEAST_NODE = 1 << 63
"""The least node of a router in a network: above the numbers of all domains."""

LOOK_SECONDS = 0.01
"""Interval at which closing checks that."""


def silent(*_: object) -> None:
    """Write no log."""


class RouterDaemon:
    """A router that serves until it is closed; `start` creates it."""

    def __init__(self, config: RouterConfig, write: Write) -> None:
        """Prepare the portals and drive their machine. Raises InterfaceError, and errors of their options."""
        self.config = config
        self._write = write
        self.portals = [
            PortalContext(config.name, number, portal, self._feed, self._remark)
            for number, portal in enumerate(config.portals)
        ]
        node = LEAST_NODE | machine.entropy.bits(63)
        self.peers = [
            PeerPortal(number, peer, Hello(node, config.name), self._feed, self._remark)
            for number, peer in enumerate(config.peers, len(self.portals))
        ]
        self.everything: list[PortalContext | PeerPortal] = [*self.portals, *self.peers]
        settings = [portal.settings for portal in self.everything]
        self.router = Router.create(settings, machine.clock.monotonic_ns(), node, config.name)
        self._driver: UntracedDriver[ev.RouterInput, fx.RouterEffect] = UntracedDriver(
            self.router, self._perform, self._on_failed
        )

    @classmethod
    async def start(cls, config: RouterConfig, write: Write = silent) -> "RouterDaemon":
        """Start a router in the running loop; `write` gets lines of the log and must not raise.

        Raises:
            PortError, InterfaceError, AddressError: A portal cannot listen, or this host has no such interface.
            OptionError, ConfigError, MisuseError: An option of a portal is wrong.
        """
        daemon = cls(config, write)
        opened: list[PortalContext | PeerPortal] = []
        try:
            for portal in daemon.everything:
                await portal.open()
                opened.append(portal)
        except BaseException:
            daemon._driver.close()
            for portal in opened:
                await portal.close()
            raise
        return daemon

    def snapshot(self, *, brief: bool = False) -> RouterView:
        """Return what the router shows of itself; `brief`: without interest and proxies, which cost more."""
        addresses = [portal.address for portal in self.everything]
        return view_of(self.config.name, self.router, addresses, brief=brief)

    async def close(self) -> None:
        """Let go of what waits, advertise the end of all proxy sources, and stop, within `DRAIN_SECONDS`."""
        self._driver.close()
        for peer in self.peers:  # First, because others know another way at once, and this router sends no more.
            await peer.close()
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await asyncio.gather(*(portal.close_proxies() for portal in self.portals))
                while any(portal.saying for portal in self.portals):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_SECONDS)  # Nothing reports that the last advertisement has left.
        except TimeoutError:
            self._write(Severity.WARNING, "", "stopping", "not everything that waited has left")
        for portal in self.portals:
            await portal.close()

    def _feed(self, event: ev.RouterInput) -> None:
        self._driver.feed(event)

    def _remark(self, text: str, warning: bool) -> None:
        self._write(Severity.WARNING if warning else Severity.INFO, "", "router", text)

    def _perform(self, effect: fx.RouterEffect) -> None:
        if isinstance(effect, Remark):
            self._remark(effect.text, effect.warning)
            return
        if effect.portal >= len(self.portals):
            self._perform_on_link(self.peers[effect.portal - len(self.portals)], effect)
            return
        portal = self.portals[effect.portal]
        match effect:
            case fx.Forward():
                portal.forward(effect)
            case fx.SendUnicast():
                portal.send(effect)
            case fx.Disconnect():
                portal.disconnect(effect)
            case fx.Want():
                portal.want(effect)
            case fx.AskUse():
                portal.ask_use(effect)
            case fx.Announce():
                portal.announce(effect)
            case fx.TellName():
                portal.tell_name(effect)
            case fx.Wake():
                portal.wake(effect)
            case fx.JoinSource():
                portal.join(effect)
            case fx.LeaveSource(source=source):
                portal.leave(source)
            case fx.OpenProxy():
                portal.open_proxy(effect, self.router.streams)
            case fx.CloseProxy(source=source):
                portal.close_proxy(source)
            case fx.LinkSend() | fx.LinkDrop():
                raise MisuseError(f"portal {effect.portal} is in a domain")
            case _:
                assert_never(effect)

    def _perform_on_link(self, peer: PeerPortal, effect: fx.PortalEffect) -> None:
        match effect:
            case fx.Forward():
                peer.forward(effect)
            case fx.SendUnicast():
                peer.send(effect)
            case fx.LinkSend(octets=octets):
                peer.tell(octets)
            case fx.LinkDrop(reason=reason):
                peer.drop(reason)
            case _:
                raise MisuseError(f"portal {effect.portal} is no domain's, and there is no {describe(effect)}")

    def _on_failed(self, effect: object, error: Exception) -> None:
        """Tell the machine what did not happen; it tries again, or counts what was lost."""
        match effect:
            case fx.OpenProxy(portal, source):
                self._feed(ev.ProxyFailed(portal, source, str(error)))
            case fx.JoinSource(portal, source) if isinstance(error, StablecastError):
                self._feed(ev.StreamEnded(source))
                self.portals[portal].rejoin(effect, error)
            case fx.JoinSource(source=source):
                self._feed(ev.StreamEnded(source))
                report(f"{describe(effect)} failed", error)
            case fx.Forward(portal):
                self.router.portals[portal].counted.dropped[Drop.ERROR] += 1
            case _:
                report(f"{describe(effect)} failed", error)
