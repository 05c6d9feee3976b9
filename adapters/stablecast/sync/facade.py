"""Objects that stand for those of the asyncio client, and methods of theirs that block."""

from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from stablecast.sync.loop_thread import LoopThread

P = ParamSpec("P")
T = TypeVar("T")
InnerT = TypeVar("InnerT")
FacadeT = TypeVar("FacadeT")


class Facade(Generic[InnerT]):
    """An object of the asyncio client, and the thread of its event loop."""

    def __init__(self, inner: InnerT, thread: LoopThread) -> None:
        """Stand for `inner`, which lives in `thread`."""
        self._inner = inner
        self._thread = thread


def awaited(
    method: Callable[Concatenate[InnerT, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Facade[InnerT], P], T]:
    """Return a method that runs a coroutine method to its end."""

    @wraps(method)
    def blocking(self: Facade[InnerT], /, *arguments: P.args, **more: P.kwargs) -> T:
        return self._thread.run(method(self._inner, *arguments, **more))

    return blocking


def called(method: Callable[Concatenate[InnerT, P], T]) -> Callable[Concatenate[Facade[InnerT], P], T]:
    """Return a method that calls a plain method in the thread of the loop."""

    @wraps(method)
    def blocking(self: Facade[InnerT], /, *arguments: P.args, **more: P.kwargs) -> T:
        return self._thread.call(method, self._inner, *arguments, **more)

    return blocking


class Shown(property, Generic[T]):
    """A property that is that of the object for which a facade stands."""

    def __init__(self, model: Any, *, in_loop: bool = False) -> None:
        """Show the property `model`; `in_loop`: read it in the thread of the loop."""
        read = model.__get__
        outside, inside = (
            lambda facade: read(facade._inner),  # noqa: SLF001 - its own
            lambda facade: facade._thread.call(read, facade._inner),  # noqa: SLF001 - its own
        )
        super().__init__(inside if in_loop else outside)
        self.__doc__ = model.__doc__

    if TYPE_CHECKING:

        def __get__(self, facade: Any, owner: type | None = None) -> T: ...  # type: ignore[override] # more exact


def like(
    model: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[Concatenate[FacadeT, ...], T]], Callable[Concatenate[FacadeT, P], T]]:
    """Return a decorator that gives a method the arguments of another one."""

    def given(method: Callable[Concatenate[FacadeT, ...], T]) -> Callable[Concatenate[FacadeT, P], T]:
        method.__signature__ = signature(model)  # type: ignore[attr-defined] # for `help`
        return method

    return given
