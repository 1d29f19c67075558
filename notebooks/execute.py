"""Run the notebooks, and write what came out into them.

    python notebooks/execute.py            # all of them, written back
    python notebooks/execute.py --check    # nothing written; ends with 1 where the outputs are stale

They run in this interpreter's own kernel, whatever is registered, in an empty folder with an empty home: no
``.env`` of yours is read.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
NOTEBOOKS = sorted(HERE.glob("[0-9]*.ipynb"))


class _ThisInterpreter(KernelSpecManager):
    """A fresh virtual environment may have no kernel registered, and a home folder that of another one."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


class _Kernel(AsyncKernelManager):
    def _kernel_spec_manager_default(self) -> KernelSpecManager:
        return _ThisInterpreter()


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook as a run from top to bottom leaves it. Raises CellExecutionError where a cell does."""
    notebook = nbformat.read(path, as_version=4)
    with _empty_home() as home:
        resources = {"metadata": {"path": home}}
        client = NotebookClient(
            notebook, kernel_manager_class=_Kernel, timeout=300, record_timing=False, resources=resources
        )
        client.execute()
    return as_committed(notebook)


def as_committed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """``notebook`` without what differs from run to run or between interpreters."""
    notebook.metadata = nbformat.from_dict({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })  # fmt: skip
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """What was printed in one go may come in several pieces."""
    joined: list[Any] = []
    for output in outputs:
        before = joined[-1] if joined else None
        if before and output.output_type == before.output_type == "stream" and output.name == before.name:
            before.text += output.text
        else:
            joined.append(output)
    return joined


@contextmanager
def _empty_home() -> Iterator[str]:
    kept = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="lc-memory-notebook-") as home:
        names = ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "LC_MEMORY_HOME")
        os.environ.update({name: str(Path(home, name.lower())) for name in names})
        found = [str(HERE), str(HERE.parent), kept.get("PYTHONPATH")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, found))
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
        try:
            yield home
        finally:
            os.environ.clear()
            os.environ.update(kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where the outputs are stale")
    check = parser.parse_args().check
    stale = []
    for path in NOTEBOOKS:
        committed = nbformat.read(path, as_version=4)
        now = executed(path)
        if now != committed:
            stale.append(path.name)
        if not check:
            nbformat.write(now, path)
    print("stale:" if check else "written:", ", ".join(stale) or "none")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
