"""Execution of a machine's effects such that none is lost.

A machine counts on each effect that it returned. If performing one raises, the effects after it are still performed,
and the endpoint is notified. The endpoint feeds the failure to its machine, or ends and reports why.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

EffectT = TypeVar("EffectT")


def perform_all(
    effects: Iterable[EffectT], perform: Callable[[EffectT], None], failed: Callable[[object, Exception], None]
) -> None:
    """Perform effects in order, and hand each one that raises to `failed`.

    If `failed` raises, the exception handler of the running loop gets that exception, and no effect is skipped.
    """
    left = iter(effects)
    while True:
        # One `try` for all effects: a turn without a failure pays only for the loop.
        effect: EffectT | None = None
        try:
            for effect in left:
                perform(effect)
        except Exception as error:  # noqa: BLE001 - the other effects must be performed after any failure
            assert effect is not None
            guard(f"handling the failure of {describe(effect)} failed", failed, effect, error)
        else:
            return


def guard(text: str, act: Callable[..., None], *arguments: object) -> None:
    """Call `act`; report an exception that it raises, with this text."""
    try:
        act(*arguments)
    except Exception as error:  # noqa: BLE001 - `act` is one of several callbacks, and the others must be called
        report(text, error)


def report(text: str, error: Exception) -> None:
    """Hand an exception that nobody awaits to the exception handler of the running loop, which logs it."""
    asyncio.get_running_loop().call_exception_handler({"message": text, "exception": error})


def describe(effect: object) -> str:
    """Return the name of an effect for a sentence; a text is returned as it is."""
    return effect if isinstance(effect, str) else f"the effect '{type(effect).__name__}'"
