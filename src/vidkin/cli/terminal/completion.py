"""Completion in zsh from the first Tab on."""

from __future__ import annotations

from typer import _completion_shared

__all__ = ["complete_at_first_tab"]

# zsh loads a file of completions at the first Tab and expects that it also completes; typer's only defines a function.
_COMPLETE = '\n[[ ${zsh_eval_context[-1]} == loadautofunc ]] && %(complete_func)s "$@"\n'


def complete_at_first_tab() -> None:
    """Add to typer's script for zsh that it completes when it is loaded; without it, the first Tab does nothing."""
    # Not public: a version of typer without it keeps its own script.
    scripts = getattr(_completion_shared, "_completion_scripts", {})
    if not scripts.get("zsh", _COMPLETE).endswith(_COMPLETE):
        scripts["zsh"] += _COMPLETE
