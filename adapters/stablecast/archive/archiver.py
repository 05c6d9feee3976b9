"""One run of an archive: reads what became stable since the last run, and writes it into the folder.

A source continues at the number at which the last run ended, so nothing is missing between runs and nothing comes
twice. With a session the run registers a consumer and acknowledges what is archived, so that receiver-paced stores keep
the rest until the next run.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from stablecast.archive.day_files import SCHEMA, DayFiles
from stablecast.archive.manifest import MANIFEST, ArchivedFile, ArchivedHole, ArchivedSource, ArchiveError, Manifest
from stablecast.archive.message_columns import arrow_batch, chosen_by, joined, name_of
from stablecast.client import Context
from stablecast.client.range_contents import SourceContents
from stablecast.client.range_reader import MissingRange, SourceRange
from stablecast.client.stored_consumer import StoredConsumer
from stablecast.core.protocol.messages import Pace
from stablecast.text import refusal

SAVE_ROWS = 1_000_000
"""Messages after which files are closed and the manifest is replaced."""

GROUP_ROWS = 20_000
"""Messages of a row group of a file at least, unless the source has fewer."""

REGISTRATION_SECONDS = 60.0
"""Time to wait for the registration of a session, which a run that was killed may still hold."""


@attrs.frozen
class ArchiveTerms:
    """The options of a run.

    `session` 0 acknowledges nothing, `pace` is that of the stores' repositories, and a topic that is `new` may have no
    source yet.
    """

    topic: str
    folder: Path
    stores: Sequence[str]
    patience: float
    quorum: int | None = None
    session: int = 0
    pace: Pace = Pace.RECEIVERS
    new: bool = False


@attrs.define
class ArchiveReport:
    """The result of a run: messages, and the ranges that were missing."""

    messages: int = 0
    missing: list[MissingRange] = attrs.field(factory=list)


@attrs.define
class ArchiveRun:
    """A run in an open context."""

    terms: ArchiveTerms
    context: Context
    manifest: Manifest
    consumer: StoredConsumer | None = None
    report: ArchiveReport = attrs.field(factory=ArchiveReport)
    _folder: os.stat_result = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._folder = self.terms.folder.stat()

    async def run(self) -> ArchiveReport:
        """Archive all sources. Raises ReadFailed, TopicUnknown, ConsumerRefused, OSError."""
        planned = await self._plan()
        if self.consumer is not None:
            await self.consumer.register({name_of(source): source for source, _ in planned}, REGISTRATION_SECONDS)
            planned = await self._plan()  # Messages are kept from the registration on.
        for source, found in planned:
            await self._archive(source, found)
        return self.report

    async def _plan(self) -> list[tuple[SourceContents, SourceRange]]:
        terms = self.terms
        new = terms.new or bool(self.manifest.sources)
        reader = self.context.reader(
            terms.topic, stores=terms.stores, patience=terms.patience, quorum=terms.quorum, new=new
        )
        return await reader.plan()

    async def _archive(self, source: SourceContents, found: SourceRange) -> None:
        name, life = name_of(source), f"{source.incarnation:016x}"
        known = self.manifest.sources.setdefault(name, ArchivedSource(life, found.first, found.first))
        known.life = life
        if known.stop >= found.stop:
            self._acknowledge(name, known)
            return
        holes: list[MissingRange] = []
        reader = self.context.reader(
            self.terms.topic,
            stores=self.terms.stores,
            sources=[chosen_by(name)],
            since=known.stop,
            until=found.stop,
            patience=self.terms.patience,
            quorum=self.terms.quorum,
            stable=False,
            times=True,
            on_hole=holes.append,
        )
        writer = DayFiles(self.terms.folder)
        async with reader:
            pending, count = [], 0
            async for batch in reader.batches():
                pending.append(arrow_batch(batch, name, SCHEMA))
                count += batch.count
                if count >= GROUP_ROWS:
                    writer.write(name, joined(pending))
                    pending, count = [], 0
                if writer.rows >= SAVE_ROWS and not pending:
                    self._save(name, writer, holes, batch.numbers(batch.count - 1)[1] + 1)
            if pending:
                writer.write(name, joined(pending))
        self._save(name, writer, holes, found.stop)

    def _save(self, name: str, writer: DayFiles, holes: list[MissingRange], stop: int) -> None:
        known = self.manifest.sources[name]
        self.report.messages += writer.rows
        finished = writer.finish()
        self.manifest.files += finished
        # A hole beyond `stop` was found early, and belongs to the next part.
        here = [hole for hole in holes if hole.first < stop]
        known.missing += [ArchivedHole(hole.first, min(hole.last, stop - 1), hole.reason.value) for hole in here]
        self.report.missing += here
        holes[:] = [hole for hole in holes if hole.first >= stop]
        known.stop = stop
        self.manifest.save(self.terms.folder)
        self._check_names(finished)
        self._acknowledge(name, known)

    def _check_names(self, finished: list[ArchivedFile]) -> None:
        """Check that the folder is still the locked one, and has the files that were just written.

        Stores may delete what is acknowledged. An archive that others removed meanwhile must not let them.
        """
        folder = self.terms.folder
        missing = [file.path for file in finished if not (folder / file.path).exists()]
        if missing or not os.path.samestat(folder.stat(), self._folder):
            raise ArchiveError(f"the archive {folder} was removed or replaced while it was written; archive it again")

    def _acknowledge(self, name: str, known: ArchivedSource) -> None:
        if self.consumer is not None:
            self.consumer.acknowledge(name, known.stop)


async def archive(context: Context, terms: ArchiveTerms) -> ArchiveReport:
    """Archive what is stable now and was not archived before. Raises ArchiveError, ReadFailed, ConsumerRefused."""
    with opened(terms.folder, terms.topic) as manifest:
        if not terms.session:
            return await ArchiveRun(terms, context, manifest).run()
        config = attrs.evolve(context.template(terms.session), topic=terms.topic, pace=terms.pace)
        consumer = StoredConsumer(context.reads, config, terms.stores)
        try:
            return await ArchiveRun(terms, context, manifest, consumer).run()
        finally:
            await consumer.close()


@contextmanager
def opened(folder: Path, topic: str) -> Iterator[Manifest]:
    """Yield the manifest of an archive, which is made if the folder is new or empty. Raises ArchiveError.

    The folder is locked: another run would take the files of this one for those of a run that was killed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ArchiveError(f"the archive {folder} cannot be written: {refusal(error)}") from error
    try:
        yield _locked(folder, descriptor, topic)
    finally:
        os.close(descriptor)


def _locked(folder: Path, descriptor: int, topic: str) -> Manifest:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not (folder / MANIFEST).exists():
            if any(folder.iterdir()):
                raise ArchiveError(f"{folder} has other files and is no archive: name a new folder")
            Manifest(topic).save(folder)
        found = Manifest.load(folder)
        if found.topic != topic:
            raise ArchiveError(f"{folder} is the archive of '{found.topic}', not of '{topic}': name another folder")
        _remove_unfinished(folder, found)
    except BlockingIOError:
        raise ArchiveError(f"another run writes the archive {folder}: wait until it ends, or stop it") from None
    except OSError as error:
        raise ArchiveError(f"the archive {folder} cannot be written: {refusal(error)}") from error
    return found


def _remove_unfinished(folder: Path, manifest: Manifest) -> None:
    """Remove the files of a run that was killed: Spark would read them if it reads the folder as Parquet."""
    known = {file.path for file in manifest.files}
    for path in folder.glob("day=*/*.parquet"):
        if str(path.relative_to(folder)) not in known:
            path.unlink()
