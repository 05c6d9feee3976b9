"""A model of the sink: drivers one after the other, tasks in any division, zombies. The sink's code chooses the rows.

A state has the messages of the topic, the holders of its lanes, and the attempts. An attempt divides the rows of the
batch as it likes. A task enters its lane, takes lanes of earlier attempts, looks, sends row by row, and ends or dies.
A driver may die at any moment; its tasks may go on, as zombies. A quorum of stores is one place here: what a
registration promises, that a lane has one holder and that a reader sees what was stable before, is shown elsewhere.

`explore` walks all states and returns how each run ended. A run ends `once` if each row is in the topic as often as in
the batch when a driver commits, and nothing comes later. It ends `refused` if a driver says so. All else is a fault.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from stablecast.spark.row_identity import RowChoice, RowMark, Seen, SinkError, lanes_to_take, missing_rows

OVER = ("ended", "dead")

DRIVER = 9
"""The lane of the driver."""


@attrs.frozen
class Sent:
    """A message: its lane, the life that sent it, its attempt and its row."""

    lane: int
    life: int
    epoch: int
    row: str


@attrs.frozen
class Task:
    """A task of an attempt: `rows` are left; `choice` is what it saw, None before it looked.

    `step` is wait, taking, sending, ended or dead.
    """

    epoch: int
    lane: int
    rows: tuple[str, ...]
    step: str = "wait"
    life: int = 0
    own: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()
    withheld: tuple[str, ...] = ()


@attrs.frozen
class State:
    """A state: `lives` are the newest life of each lane, `seen` those at the plan of each attempt."""

    topic: tuple[Sent, ...] = ()
    lives: tuple[tuple[int, int], ...] = ()
    holders: tuple[tuple[int, int], ...] = ()
    next_life: int = 1
    epoch: int = 0
    seen: tuple[tuple[tuple[int, Seen], ...], ...] = ()
    tasks: tuple[Task, ...] = ()
    committed: bool = False
    fault: str = ""


@attrs.define
class Model:
    """The bounds of the model.

    Attributes:
        rows: The rows of the batch; equal letters are equal rows.
        divisions: The divisions that attempts may use, each a partition's rows by partition.
        attempts: Attempts at most.
        late: Whether a task of an attempt that is over may still begin.
        ends: The count of each way in which runs ended.
    """

    rows: str
    divisions: Sequence[Sequence[str]]
    attempts: int = 2
    late: bool = False
    ends: Counter[str] = attrs.field(factory=Counter)

    def explore(self) -> Counter[str]:
        """Walk all states; return the count of each end."""
        found, left = {State()}, [State()]
        while left:
            state = left.pop()
            for after in map(reduced, self.steps(state)):
                if after not in found:
                    found.add(after)
                    if after.fault:
                        self.ends[after.fault] += 1
                    else:
                        left.append(after)
        self.ends["states"] = len(found)
        return self.ends

    def steps(self, state: State) -> Iterator[State]:
        """Yield the states after each step that is possible."""
        if not state.committed and state.epoch < self.attempts:
            for division in self.divisions:
                yield self._planned(state, division)
        for place, task in enumerate(state.tasks):
            if task.step in OVER:
                continue
            if task.epoch < state.epoch and task.step == "wait" and not self.late:
                continue
            yield self._with(self._free(state, task), place, attrs.evolve(task, step="dead"))
            yield from self._task(state, place, task)
        current = [task for task in state.tasks if task.epoch == state.epoch]
        if current and all(task.step == "ended" for task in current) and not state.committed:
            yield self._committed(state, current)

    def _planned(self, state: State, division: Sequence[str]) -> State:
        stops = Counter(one.lane for one in state.topic)
        seen = tuple((lane, Seen(life, stops[lane])) for lane, life in state.lives)
        epoch = state.epoch + 1
        tasks = tuple(Task(epoch, lane, tuple(rows)) for lane, rows in enumerate(division))
        return attrs.evolve(state, epoch=epoch, seen=(*state.seen, seen), tasks=(*state.tasks, *tasks))

    def _with(self, state: State, place: int, task: Task) -> State:
        return attrs.evolve(state, tasks=(*state.tasks[:place], task, *state.tasks[place + 1 :]))

    def _free(self, state: State, task: Task) -> State:
        return attrs.evolve(state, holders=tuple(one for one in state.holders if one[1] != task.life))

    def _hold(self, state: State, lane: int, *, keep: bool) -> State:
        """Register a new life of a lane that nobody holds."""
        life, lives = state.next_life, dict(state.lives)
        lives[lane] = life
        holders = (*state.holders, (lane, life)) if keep else state.holders
        return attrs.evolve(
            state, lives=tuple(sorted(lives.items())), holders=tuple(sorted(holders)), next_life=life + 1
        )

    def _task(self, state: State, place: int, task: Task) -> Iterator[State]:
        held, before = dict(state.holders), dict(state.seen[task.epoch - 1])
        match task.step:
            case "wait" if task.lane not in held:
                after = self._hold(state, task.lane, keep=True)
                yield self._with(after, place, attrs.evolve(task, step="taking", life=state.next_life))
            case "taking":
                due = self.to_take(state, before, task.lane)
                if not due:
                    yield self._looked(state, place, task, before)
                elif min(due) not in held:
                    yield self._hold(state, min(due), keep=False)
            case "sending":
                yield from self._row(state, place, task)

    def to_take(self, state: State, before: dict[int, Seen], own: int) -> set[int]:
        """Return the lanes to take before the task looks."""
        return lanes_to_take(dict(state.lives), before, own)

    def _looked(self, state: State, place: int, task: Task, before: dict[int, Seen]) -> State:
        choice, numbers = RowChoice("batch 0"), Counter[int]()
        nobody = Seen(-1, 0)
        try:
            for one in state.topic:
                number, peer, here = numbers[one.lane], one.epoch == task.epoch, one.lane == task.lane
                numbers[one.lane] += 1
                if here or not peer:
                    known = before.get(one.lane, nobody).has(one.life, number)
                    choice.add(RowMark(0, 0, str(one.epoch), one.row), own=here and peer, before=known)
        except SinkError:
            return self._refused(state, place, task)
        task = attrs.evolve(task, step="sending", own=_items(choice.own), others=_items(choice.others))
        return self._with(state, place, task)

    def _refused(self, state: State, place: int, task: Task) -> State:
        """Let a task fail: its driver is told if it lives."""
        self.ends["refused by a task"] += 1
        return self._with(self._free(state, task), place, attrs.evolve(task, step="dead"))

    def _row(self, state: State, place: int, task: Task) -> Iterator[State]:
        choice = RowChoice("batch 0", Counter(dict(task.own)), Counter(dict(task.others)))
        if not task.rows:
            yield self._with(
                self._free(state, task), place, attrs.evolve(task, step="ended", life=0, own=(), others=())
            )
            return
        row, rest = task.rows[0], task.rows[1:]
        if choice.sends(row):
            after = attrs.evolve(state, topic=(*state.topic, Sent(task.lane, task.life, task.epoch, row)))
            if state.committed:
                after = attrs.evolve(after, fault="a message after the commit")
            yield self._with(after, place, attrs.evolve(task, rows=rest))
        else:
            withheld = tuple(sorted((*task.withheld, *choice.withheld.elements())))
            yield self._with(state, place, attrs.evolve(task, rows=rest, own=_items(choice.own), withheld=withheld))

    def _committed(self, state: State, tasks: Sequence[Task]) -> State:
        others = Counter(one.row for one in state.topic if one.epoch != state.epoch)
        try:
            missing = self.missing([Counter(task.withheld) for task in tasks], others)
        except SinkError:
            self.ends["refused by the driver"] += 1
            return attrs.evolve(state, committed=True, tasks=(), fault="refused")
        sent = tuple(Sent(DRIVER, 0, state.epoch, row) for row in missing.elements())
        topic = (*state.topic, *sent)
        there, want = Counter(one.row for one in topic), Counter(self.rows)
        fault = "" if there == want else "lost" if want - there else "twice"
        self.ends["once"] += not fault
        return attrs.evolve(state, topic=topic, committed=True, fault=fault)

    def missing(self, withheld: list[Counter[str]], others: Counter[str]) -> Counter[str]:
        """Return what the driver sends at the end."""
        return missing_rows("batch 0", withheld, others, keyed=False)


def reduced(state: State) -> State:
    """Return the state without what no later step depends on: tasks that are over, and the order between lanes."""
    tasks = [
        attrs.evolve(task, rows=(), life=0, own=(), others=()) if task.step in OVER else task
        for task in state.tasks
        if task.step not in OVER or task.epoch == state.epoch
    ]
    if any(task.step == "dead" and task.epoch == state.epoch for task in tasks):
        # This attempt cannot commit any more, so nothing of the tasks that ended counts.
        tasks = [attrs.evolve(task, withheld=()) if task.step in OVER else task for task in tasks]
    topic = tuple(sorted(state.topic, key=lambda one: one.lane))
    return attrs.evolve(state, tasks=tuple(tasks), topic=topic)


def _items(found: Counter[str]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((row, count) for row, count in found.items() if count))
