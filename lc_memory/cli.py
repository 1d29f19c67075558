"""The command line: ``lc-memory demo`` shows the main job, ``lc-memory chat`` is a session of one's own."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from .errors import LCMemoryError

if TYPE_CHECKING:
    from .memory import Memory

app = typer.Typer(
    help="Memory at the head of LangChain chains.", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False,
)  # fmt: skip
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

QUESTIONS = ("我叫小明，喜欢打篮球", "我刚说的爱好是什么？", "我名字叫什么？")
HELP = """\
/history   what was said in this session
/graph     what stands where in the chain
/explain Q what the prompt of a question Q would get, and why
/help      this text
记住: … or remember: …   keeps a fact for all sessions to come
Ctrl-D or /exit ends; Ctrl-C stops an answer, which is then not saved."""

Provider = Annotated[
    str | None, typer.Option(help="deepseek, kimi, qwen, openai, ollama, offline, or one of config.json")
]

Where = Annotated[
    str | None,
    typer.Option(help="Folder or database URL of the memory  [default: ~/.lc_memory, or LC_MEMORY_HOME]"),
]


@app.command()
def demo(provider: Provider = None) -> None:
    """Three questions through load_mem | prompt | model | parser, the chain's graph, and its history."""
    from .memory import Memory
    from .models import chat_model

    with tempfile.TemporaryDirectory(prefix="lc-memory-") as folder:
        model = chat_model(provider)
        with Memory.open(folder, summarizer=model) as memory:
            chain, bot = _bot(memory, model)
            for question in QUESTIONS:
                out.print(f"[bold]Q:[/bold] {question}")
                _answer(bot.stream({"question": question}), "[bold]A:[/bold] ")
            out.print("\n[bold]chain[/bold]")
            _print_graph(chain)
            out.print("\n[bold]with_memory(chain, memory)[/bold]")
            _print_graph(bot)
            out.print("\n[bold]history[/bold]")
            _print_history(memory.session().messages())


@app.command()
def chat(
    provider: Provider = None,
    memory: Where = None,
    user: Annotated[str | None, typer.Option(help="Whose long-term facts")] = None,
    session: Annotated[str, typer.Option(help="Which conversation")] = "default",
) -> None:
    """An interactive session with streamed answers. Reads questions from a pipe too, one a line."""
    from .memory import Memory
    from .models import chat_model
    from .script import home

    model = chat_model(provider)
    with Memory.open(memory or home(), summarizer=model) as opened:
        _, bot = _bot(opened, model)
        configurable = {"session_id": session, **({"user_id": user} if user else {})}
        config: Any = {"configurable": configurable}
        mine = opened.session(session, user)
        interactive = sys.stdin.isatty()
        if interactive:
            out.print(
                f"[dim]session {escape(session)}, {escape(model.get_name())}; /help says what there is[/dim]"
            )
        for line in _lines(interactive):
            if line in ("/exit", "/quit"):
                break
            if line == "/help":
                out.print(escape(HELP))
            elif line == "/graph":
                _print_graph(bot)
            elif line == "/history":
                _print_history(mine.messages())
            elif line.startswith("/explain"):
                question = line.removeprefix("/explain").strip() or "…"
                out.print(escape(str(opened.explain(question, config))))
            elif line.startswith("/"):
                err.print(f"no command {escape(line.split()[0])}; /help lists them")
            else:
                _turn(bot, line, config)
        if interactive:
            out.print("再见 · bye")


def _turn(bot: Any, line: str, config: Any) -> None:
    from .remember import said_to_remember

    try:
        _answer(bot.stream({"question": line}, config))
    except KeyboardInterrupt:
        out.print("\n[dim]stopped; this turn is not saved[/dim]")
        return
    except Exception as error:
        err.print(f"[red]{escape(_said(error))}[/red]")
        return
    if fact := said_to_remember(line):
        out.print(f"[dim]已记住 · remembered: {escape(fact)}[/dim]")


def _lines(interactive: bool) -> Iterator[str]:
    while True:
        try:
            line = input("\nyou> " if interactive else "")
        except EOFError:
            return
        except KeyboardInterrupt:
            out.print()
            return
        if line.strip():
            yield line.strip()


def _answer(chunks: Iterator[str], head: str = "") -> None:
    out.print(head, end="")
    for chunk in chunks:
        out.print(escape(chunk), end="")
        out.file.flush()
    out.print()


def _bot(memory: Memory, model: Any) -> tuple[Any, Any]:
    from langchain_core.output_parsers import StrOutputParser

    from .recorder import with_memory
    from .script import chat_prompt

    chain = memory.load_mem | chat_prompt() | model | StrOutputParser()
    return chain, with_memory(chain, memory)


def _print_graph(chain: Any) -> None:
    try:
        out.print(escape(chain.get_graph().draw_ascii()))
    except ImportError:
        out.print(escape(chain.get_graph().draw_mermaid()))
        err.print("[dim]print_ascii() needs grandalf: pip install 'lc-memory[graph]'[/dim]")


def _print_history(messages: Sequence[Any]) -> None:
    if not messages:
        out.print("[dim](nothing yet)[/dim]")
    for message in messages:
        out.print(f"  [bold]{message.type}[/bold]: {escape(str(message.text))}")


def _said(error: BaseException) -> str:
    if isinstance(error, LCMemoryError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def main(args: Sequence[str] | None = None) -> None:
    """The console script. Our own errors are one line on stderr and exit code 1."""
    warnings.showwarning = lambda message, *_, **__: err.print(f"[yellow]{escape(str(message))}[/yellow]")
    try:
        app(args=list(sys.argv[1:] if args is None else args))
    except LCMemoryError as error:
        err.print(f"[red]{escape(_said(error))}[/red]")
        sys.exit(1)


if __name__ == "__main__":
    main()
