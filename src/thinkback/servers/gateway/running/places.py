"""Where a gateway's configuration and its state are, for the server and for the commands that work beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from thinkback.errors import CredentialError, NotFoundError, RuleFileError
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.config.schema import Store as Kept
from thinkback.session.config import config_dir
from thinkback.stores import SERVER

if TYPE_CHECKING:
    from thinkback.stores.gateway_state.state import GatewayState

NAME = "gateway.toml"


def configuration(given: str = "") -> Config:
    """The configuration in the file ``given``, else in ``gateway.toml`` of the configuration directory, else defaults.

    Raises ``NotFoundError`` where no file is at ``given``, ``RuleFileError`` for a file that is wrong.
    """
    path = Path(given).expanduser() if given else config_dir() / NAME
    if not given and not path.is_file():
        return Config()
    from thinkback.servers.gateway.config.reading import read_config

    return read_config(str(path), read_text(str(path)))


def read_text(file: str) -> str:
    """What a configuration file says. Raises ``NotFoundError``, and ``RuleFileError`` for what is no text."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no configuration {file}",
            details={"file": file},
            next_actions=("check the path after --config, or leave it out",),
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RuleFileError(f"the configuration {file} cannot be read: {why}", details={"file": file}) from None


def state_place(store: Kept, environment: Mapping[str, str] = os.environ) -> str:
    """The directory, or the address of the database, that ``store`` names; by itself in the user's data directory.

    Raises ``CredentialError`` for an address that is referred to and not there, or is none of a database.
    """
    if store.url.startswith(("env:", "file:")):
        from thinkback.servers.gateway.secrets.secret import read_reference

        return _address(read_reference(store.url, environment), store.url)
    if store.url or store.path:
        return store.url or str(Path(store.path).expanduser())
    import platformdirs

    return str(Path(platformdirs.user_data_dir("thinkback", appauthor=False)) / "gateway")


def _address(found: bytes, reference: str) -> str:
    """``found`` where it is an address; it may hold a password and is not repeated."""
    address = found.decode("utf-8", "replace")
    if not address.startswith(SERVER):
        raise CredentialError(
            f"{reference} is not a database address",
            next_actions=("it must begin with postgresql://; store.path names a directory",),
        )
    return address


def spool_place(store: Kept, place: str) -> Path:
    """The directory of the spool: what is configured, else beside the state, or in the user's data directory."""
    if store.spool:
        return Path(store.spool).expanduser()
    return Path(state_place(Kept()) if place.startswith(SERVER) else place) / "spool"


def office_of(config: Config, environment: Mapping[str, str] = os.environ) -> GatewayState:
    """The office of a gateway so configured, opened."""
    from thinkback.stores.gateway_state import open_gateway_state

    store = config.store
    return open_gateway_state(state_place(store, environment), store.durability, min(4, store.connections))
