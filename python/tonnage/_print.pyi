"""Written by python/tools/stubs.py; change that, or the package, not this."""

from typing import Any

def print(*inputs: Any, output_stream: Any = None, end: str = '\n', sep: str = ' ', summarize: int | None = 3, name: str | None = None) -> None: ...
