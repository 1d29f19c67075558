"""The command line: ``lc-memory demo`` shows the main job, ``lc-memory chat`` is a session of one's own.

Exit codes: 0, done; 1, something failed and stderr says what; 2, the command line was not understood;
130, Ctrl-C.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from . import cli_facts, cli_store
from .errors import LCMemoryError

if TYPE_CHECKING:
    from .memory import Memory

app = typer.Typer(
    help="Memory at the head of LangChain chains.", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
app.add_typer(cli_facts.app)
app.add_typer(cli_store.app)
# What is printed is mostly other people's words: brackets and :colons: in them are not markup.
out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)

QUESTIONS = ("我叫小明，喜欢打篮球", "我刚说的爱好是什么？", "我名字叫什么？")
COMES_BACK = ("", "篮球", "小明")
"""What of the first question must stand in the answer to each."""

HELP = """\
/history     what was said in this session
/explain Q   what the prompt of a question Q would get, and why
/graph       what stands where in the chain
/help        this text
/exit        ends, and so does Ctrl-D

记住: …      keeps a fact for all sessions to come; in English, remember: …
Ctrl-C       stops an answer; that turn is not saved"""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COMMAND = re.compile(r"/([a-z]*)(?:\s+(.*))?", re.DOTALL)  # "/etc/hosts 是什么？" is a question

Provider = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which model answers: deepseek, kimi, qwen, openai, ollama, offline, or one of config.json. "
        "Without it the one that is configured, else offline.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="Folder or database URL of the memory. Without it LC_MEMORY_HOME, else ~/.lc_memory.",
    ),
]


@app.command()
def demo(provider: Provider = None) -> None:
    """Ask three questions, and show the chain and its history.

    Nothing is kept. Ends with 1 when a name or a hobby does not come back.
    """
    from .memory import Memory
    from .models import chat_model

    with tempfile.TemporaryDirectory(prefix="lc-memory-") as folder:
        model = chat_model(provider)
        with Memory.open(folder, summarizer=model) as memory:
            bot = _bot(memory, model)
            missing = []
            for question, expected in zip(QUESTIONS, COMES_BACK, strict=True):
                out.out("Q: ", style="bold", end="")
                out.out(question)
                out.out("A: ", style="bold", end="")
                try:
                    answer = _answer(bot.stream({"question": question}))
                except Exception as error:
                    err.print(_in_one_line(error), style="red")
                    raise typer.Exit(1) from None
                missing += [expected] if expected not in answer else []
            out.print("\nThe chain: load_mem comes first, save_mem last\n", style="bold")
            _print_graph(bot)
            out.print("\nThe history\n", style="bold")
            _print_history(memory.session().messages())
    if missing:
        err.print(f"\nnot in the answers: {', '.join(missing)}", style="red")
        raise typer.Exit(1)
    out.print("\nName and hobby came back. A session of your own: lc-memory chat", style="bold")


@app.command()
def chat(
    provider: Provider = None,
    memory: Where = None,
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose session, and whose long-term facts.")
    ] = None,
    session: Annotated[str, typer.Option(metavar="ID", help="Which conversation.")] = "default",
    agent: Annotated[
        bool, typer.Option("--agent", help="Answer with tools: those config.json lists, or the usual ones.")
    ] = False,
    notes: Annotated[
        bool, typer.Option("--notes", help="Let the model propose facts to keep, every few turns.")
    ] = False,
) -> None:
    """Talk, with streamed answers; /help lists what else there is.

    Reads a pipe as well, one question a line, and then ends with 1 when one could not be answered.
    """
    from .memory import Memory
    from .models import chat_model
    from .script import home

    model = chat_model(provider)
    if notes and not hasattr(model, "model_name"):
        raise typer.BadParameter(
            "the offline model cannot propose facts; name one with --provider", param_hint="--notes"
        )
    where = memory or home()
    with Memory.open(where, summarizer=model, notes=model if notes else None) as opened:
        talk = _Talk(opened, model, session or "default", user or None, agent)
        interactive = sys.stdin.isatty() and sys.stdout.isatty()
        if interactive:
            who = f"session {talk.session.session_id}" + (f" of {user}" if user else "")
            name = getattr(model, "model_name", "offline")
            out.print(f"{_clean(who)} · model {name}\n/help lists the commands, Ctrl-D ends", style="dim")
        failed = False
        for line in _typed() if interactive else map(str.strip, sys.stdin):
            if line in ("/exit", "/quit"):
                break
            if line and not talk.turn(line):
                failed = True
        if interactive:
            out.print("再见 · bye", style="dim")
        elif failed:
            raise typer.Exit(1)


class _Talk:
    """One session at the keyboard, or from a pipe."""

    def __init__(self, memory: Memory, model: Any, session: str, user: str | None, agent: bool) -> None:
        self.memory = memory
        self.agent = agent
        self.bot = _agent(memory, model) if agent else _bot(memory, model)
        self.session = memory.session(session, user)
        self.config: Any = {"configurable": {"session_id": session, "user_id": user}}
        memory.sessions(user)  # a folder that cannot be used is better known before the first question
        self._commands: dict[str, Callable[[str], None]] = {
            "help": lambda _: out.print(HELP),
            "graph": lambda _: _print_graph(self.bot),
            "history": lambda _: _print_history(self.session.messages()),
            "explain": self._explain,
        }

    def turn(self, line: str) -> bool:
        """A question or a command. False when it failed; why has been said."""
        started = time.time()
        try:
            if command := _COMMAND.fullmatch(line):
                return self._command(command[1], command[2] or "")
            self._ask(line)
        except KeyboardInterrupt:
            saved = self._saved_since(started)
            out.print(f"stopped; this turn is {'saved' if saved else 'not saved'}", style="dim")
            return False
        except Exception as error:
            err.print(_in_one_line(error), style="red")
            return False
        return True

    def _ask(self, line: str) -> None:
        from .remember import said_to_remember

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="a fact to remember held")  # told below
            self._answered(line)
        if fact := said_to_remember(line):
            from .facts.privacy import kinds_in_words, private_in

            if found := private_in(fact):
                kinds = f"{kinds_in_words(found, 'zh')} · not kept: it holds {kinds_in_words(found)}"
                out.print(f"没有记住，其中有{kinds}", style="yellow")
            else:
                out.print(f"已记住 · remembered: {_clean(fact)}", style="dim")

    def _answered(self, line: str) -> None:
        if not self.agent:
            _answer(self.bot.stream({"question": line}, self.config))
            return
        from .cli_agent import show

        try:
            show(self.bot, line, self.config, lambda text, style: out.out(_clean(text), style=style, end=""))
        finally:
            out.print()

    def _command(self, name: str, rest: str) -> bool:
        if name not in self._commands:
            err.print(f"there is no /{name}; /help lists the commands", style="red")
            return False
        self._commands[name](rest.strip())
        return True

    def _explain(self, question: str) -> None:
        if not question:
            out.print("/explain needs a question: /explain 我叫什么？")
            return
        out.print(self.memory.explain(question, self.config), soft_wrap=False)

    def _saved_since(self, started: float) -> bool:
        # Ctrl-C may come while the turn is being saved: only the store knows what became of it.
        mine = self.session
        return any(
            info.key.session_id == mine.session_id and info.key.user_id == mine.user_id
            for info in self.memory.sessions(mine.user_id)
            if info.updated_at >= started
        )


def _typed() -> Iterator[str]:
    """Lines typed at a terminal, until Ctrl-D. Ctrl-C drops the line: pressed a moment too late to stop an
    answer, it must not end the session."""
    with suppress(ImportError):  # arrow keys and the lines typed before; not there on Windows
        import readline

        for setting in ("input-meta on", "output-meta on", "convert-meta off"):
            readline.parse_and_bind(f"set {setting}")  # Chinese can be typed in the C locale, too
    while True:
        out.print()
        try:
            line = input("you> ").strip()
        except EOFError:
            out.print()
            return
        except KeyboardInterrupt:
            out.print("\nCtrl-D or /exit ends", style="dim")
            continue
        yield line


def _answer(chunks: Any) -> str:
    """Print an answer as it comes. Closed early (by Ctrl-C), the stream saves nothing."""
    said: list[str] = []
    with closing(chunks):
        try:
            for chunk in chunks:
                said.append(chunk)
                out.out(_clean(chunk), end="")
        finally:
            out.print()
    return "".join(said)


def _bot(memory: Memory, model: Any) -> Any:
    from langchain_core.output_parsers import StrOutputParser

    from .recorder import with_memory
    from .script import chat_prompt

    return with_memory(memory.load_mem | chat_prompt() | model | StrOutputParser(), memory)


def _agent(memory: Memory, model: Any) -> Any:
    from .cli_agent import agent_of

    return agent_of(memory, model)


def _print_graph(chain: Any) -> None:
    graph = chain.get_graph()
    try:
        drawn = graph.draw_ascii()
    except ImportError:
        out.out(graph.draw_mermaid())
        err.print("drawn with characters it needs grandalf: pip install 'lc-memory[graph]'", style="dim")
        return
    out.out("\n".join(line.rstrip() for line in drawn.splitlines()))


def _print_history(messages: Sequence[Any]) -> None:
    if not messages:
        out.print("nothing yet", style="dim")
    for message in messages:
        out.out(f"{message.type:>7}  ", style="bold", end="")
        out.out("\n         ".join(_clean(str(message.text)).splitlines()))


def _clean(text: str) -> str:
    """Without control characters: what a model says must not be able to steer the terminal. Nor half of an
    emoji, which no output takes."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def _in_one_line(error: BaseException) -> str:
    said = " ".join(_clean(str(error)).split())
    if not isinstance(error, LCMemoryError):
        said = f"{type(error).__name__}: {said}"
    return said if len(said) <= 600 else f"{said[:599]}…"


def main(args: Sequence[str] | None = None) -> None:
    """The console script. Our own errors are one line on stderr and exit code 1."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # A character that the terminal cannot show, or half of one from the keyboard, is a "?", not the end.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: err.print(_clean(str(message)), style="yellow")
    try:
        app(args=list(sys.argv[1:] if args is None else args))
    except LCMemoryError as error:
        err.print(_in_one_line(error), style="red")
        sys.exit(1)


if __name__ == "__main__":
    main()
