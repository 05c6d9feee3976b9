"""The invariant of a resolution service, to be checked between inputs."""

from stablecast.core.errors import InvariantError
from stablecast.transports.resolution.srs.directory import Interest
from stablecast.transports.resolution.srs.service import ResolutionService


def check_service(service: ResolutionService) -> None:
    """Raise InvariantError unless the directory holds exactly what the clients announced."""
    owned = {otid: client.instance for client in service.clients.values() for otid in client.sources}
    if owned != {otid: source.owner for otid, source in service.directory.sources.items()}:
        raise InvariantError("the directory's sources are not those that the clients announced")
    wanted = {(client.instance, interest) for client in service.clients.values() for interest in client.interests}
    held = {(client, Interest(name)) for name, clients in service.directory.wanted.items() for client in clients}
    held |= {
        (client, Interest(name, pattern=True))
        for name, watched in service.directory.patterns.items()
        for client in watched.clients
    }
    if wanted != held:
        raise InvariantError("the directory's interest is not what the clients announced")
