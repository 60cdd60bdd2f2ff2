"""Scripts of sed: those that only change text, and those that run commands or open files."""

import pytest

from turnkeeper.text.sed_script import only_edits

EDITING = (
    *("", "p", "s/a/b/", "s/a/b/g;s|c|d|2p", "/x/d", "1,40p", "$!N;s/\\n/ /", "/start/,/end/p", "y/abc/xyz/", "2q"),
    *("1i\\hello e w", "/re/I{s/a/b/;p}", "0~3d", "s,/usr,/opt,g", "# e w\np", "s/e/w/", "\\,x,d", "/^$/d", "$a end"),
    *("w /dev/stdout", "s/a/b/w /dev/stderr", ":a;N;$!ba;s/\\n/,/g", "10,20!d", "/a/,+3d", "s/[^a-z]/_/g", "$="),
    *("a\\\ntext e\\\nmore w\np", "s/were/we/;p"),
)
ACTING = (
    *("1e rm", "e", "s/x/rm/e", "s/x/y/ge", "w ../f", "s/a/b/w f", "/x/r f", "R f", "W f", "1!e id", "/a/{e id\n}"),
    *("s/a/b/;e id", "y/a/b/;w f", "2q;e id", "p;w f", "$e id", "\\%x%e id", "/x/I e id", "s/a/b/pw f", ":a;e id"),
    *("b;e id", "ta;w f", "#x\\\ne id", "a\\\ns/x\ne id;/y/", "}e id", "b}e id", "a foo\ne id", "w /dev/stdout\ne id"),
    *("b x e id", ":a e id", "t\tx\tw f", "ba 1r f"),
)
NOT_UNDERSTOOD = ("s/a/b", "/a", "s/[/]/x/", "s/x/y\n/e id/", "k", "y/a")


@pytest.mark.parametrize("script", EDITING)
def test_what_only_changes_text_is_told_so(script: str) -> None:
    assert only_edits(script)


@pytest.mark.parametrize("script", [*ACTING, *NOT_UNDERSTOOD])
def test_what_runs_commands_opens_files_or_is_not_understood_is_not(script: str) -> None:
    assert not only_edits(script)
