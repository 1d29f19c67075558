"""The ways in which a Runnable can be called, each as a function of the same shape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from langchain_core.runnables import Runnable

Way = Callable[[Runnable[Any, Any], Any, Any], Any]


def invoke(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    return bot.invoke(given, config)


def ainvoke(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    return asyncio.run(bot.ainvoke(given, config))


def stream(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    return list(bot.stream(given, config))


def astream(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    async def run() -> list[Any]:
        return [c async for c in bot.astream(given, config)]

    return asyncio.run(run())


def transform(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    return list(bot.transform(iter([given]), config))


def atransform(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    async def run() -> list[Any]:
        async def one() -> Any:
            yield given

        return [c async for c in bot.atransform(one(), config)]

    return asyncio.run(run())


def batch(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    return bot.batch([given], config)[0]


def abatch(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    async def run() -> Any:
        return (await bot.abatch([given], config))[0]

    return asyncio.run(run())


def batch_as_completed(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    return next(iter(bot.batch_as_completed([given], config)))[1]


def astream_events(bot: Runnable[Any, Any], given: Any, config: Any) -> Any:
    async def run() -> Any:
        return [e async for e in bot.astream_events(given, config, version="v2")]

    return asyncio.run(run())


WAYS: dict[str, Way] = {
    f.__name__: f
    for f in (
        invoke,
        ainvoke,
        stream,
        astream,
        transform,
        atransform,
        batch,
        abatch,
        batch_as_completed,
        astream_events,
    )
}
ASYNC = ("ainvoke", "astream", "atransform", "abatch", "astream_events")


def close_stream(bot: Runnable[Any, Any], given: Any, config: Any) -> None:
    chunks = bot.stream(given, config)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]


def drop_stream(bot: Runnable[Any, Any], given: Any, config: Any) -> None:
    next(bot.stream(given, config))  # and nobody keeps it


def close_transform(bot: Runnable[Any, Any], given: Any, config: Any) -> None:
    chunks = bot.transform(iter([given]), config)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]


def close_astream(bot: Runnable[Any, Any], given: Any, config: Any) -> None:
    async def run() -> None:
        async with aclosing(bot.astream(given, config)) as chunks:  # type: ignore[type-var]
            async for _ in chunks:
                break

    asyncio.run(run())


def break_astream(bot: Runnable[Any, Any], given: Any, config: Any) -> None:
    async def run() -> None:
        async for _ in bot.astream(given, config):
            break

    asyncio.run(run())


def close_astream_events(bot: Runnable[Any, Any], given: Any, config: Any) -> None:
    async def run() -> None:
        async with aclosing(bot.astream_events(given, config, version="v2")) as events:  # type: ignore[type-var]
            async for event in events:
                if event["event"] == "on_chat_model_stream":
                    break

    asyncio.run(run())


CLOSED: dict[str, Callable[..., None]] = {
    f.__name__: f
    for f in (close_stream, drop_stream, close_transform, close_astream, break_astream, close_astream_events)
}


def cancelled(way: str, bot: Runnable[Any, Any], given: Any, config: Any, hanging: Any) -> None:
    """Run an async way as a task and cancel it once ``hanging`` is set."""

    async def run() -> None:
        async def consume() -> None:
            if way == "ainvoke":
                await bot.ainvoke(given, config)
            elif way == "abatch":
                await bot.abatch([given], config)
            elif way == "astream":
                async for _ in bot.astream(given, config):
                    pass
            elif way == "atransform":

                async def one() -> Any:
                    yield given

                async for _ in bot.atransform(one(), config):
                    pass
            else:
                async for _ in bot.astream_events(given, config, version="v2"):
                    pass

        task = asyncio.create_task(consume())
        await asyncio.to_thread(hanging.wait)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return
        raise AssertionError("the task was not cancelled")

    asyncio.run(run())
