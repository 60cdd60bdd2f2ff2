"""The settings of what tools use: formatters, language servers, and what is fetched. Documented as in Config."""

from turnkeeper.model.provider_config import Setting
from turnkeeper.model.value import JsonObject


class FormatterConfig(Setting):
    """A program that formats files after an edit. ``$FILE`` in its command is the file."""

    command: tuple[str, ...] | None = None
    """The program and its arguments; `$FILE` is the file. Default: that of the known formatter. Example: `["prettier",
    "--write", "$FILE"]`
    """
    extensions: tuple[str, ...] | None = None
    """For which files, as `[".js"]`. Default: those of the known formatter. Example: `[".js"]`"""
    environment: dict[str, str] = {}
    """Variables it is run with. Default: none. Example: `{"NODE_ENV": "production"}`"""
    disabled: bool | None = None
    """Not used. Default: `false`."""


class LspConfig(Setting):
    """A language server that is asked for errors after an edit, and for symbols that a prompt names."""

    command: tuple[str, ...] | None = None
    """The program and its arguments. Default: that of the known server. Example: `["pyright-langserver", "--stdio"]`"""
    extensions: tuple[str, ...] | None = None
    """For which files, as `[".py"]`. Default: those of the known server. Example: `[".py"]`"""
    env: dict[str, str] = {}
    """Variables it is run with. Default: none. Example: `{"LANG": "C"}`"""
    initialization: JsonObject = {}
    """Its initialization options. Default: none. Example: `{"strict": true}`"""
    disabled: bool | None = None
    """Not used. Default: `false`."""


class WebfetchConfig(Setting):
    """What the webfetch tool may reach."""

    private: bool | None = None
    """Whether it may reach this machine, its link and private networks. Default: `false`."""
