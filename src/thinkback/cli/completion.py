"""``completion``: the script with which a shell completes commands, options and names."""

from __future__ import annotations

import click

_VARIABLE = "_THINKBACK_COMPLETE"


@click.command("completion", short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the script that makes SHELL complete commands, options and names.

    It completes the names of sessions, branches, endpoints, models, settings, profiles and apps.

    \b
    bash:  eval "$(thinkback completion bash)"         in ~/.bashrc
    zsh:   eval "$(thinkback completion zsh)"          in ~/.zshrc
    fish:  thinkback completion fish | source          in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from thinkback.cli.app import group

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(group, {}, "thinkback", _VARIABLE).source().rstrip())
