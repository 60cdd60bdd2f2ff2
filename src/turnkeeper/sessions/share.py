"""Share a session: a public, read-only link with a secret, of which only the hash is stored."""

from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Final, get_args

from turnkeeper.model import event as e
from turnkeeper.model.redaction import KnownSecret, RedactionReport
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import Session, Share
from turnkeeper.model.share import INCLUDED, HostedShare, RemoteShare, ShareItem, ShareLink
from turnkeeper.store.engine import is_key
from turnkeeper.store.store import Store

MASKS_MAX: Final = 500
MASK_CHARS_MAX: Final = 8_192
"""A longer secret is not stored with the link. It is found by its shape: only private keys are that long."""

GONE: Final = "there is no such link: it was withdrawn, has expired, or its secret is wrong"
_NO_HASH: Final = "0" * 64


def checked_include(given: Sequence[str] | None) -> tuple[ShareItem, ...]:
    """The items that a link shows. Raises Invalid for an unknown name."""
    if given is None:
        return INCLUDED
    names: tuple[ShareItem, ...] = get_args(ShareItem)
    if not given or isinstance(given, str) or (unknown := [one for one in given if one not in names]):
        what = (
            f"{unknown[0]!r:.80} is none of them"
            if given and not isinstance(given, str)
            else f"{given!r:.80} is no list"
        )
        raise Invalid(f"a link shows some of {', '.join(names)}; {what}")
    return tuple(name for name in names if name in given)


async def share(
    store: Store,
    session_id: str,
    *,
    base: str,
    include: tuple[ShareItem, ...] = INCLUDED,
    expires_ms: int | None = None,
    masks: Sequence[KnownSecret] = (),
    report: RedactionReport | None = None,
    remote: tuple[str, RemoteShare] | None = None,
) -> ShareLink:
    """Give a session a link with a new secret. An earlier link to it ends with that.

    ``base`` is the address of the server that shows it; ``expires_ms`` is how long the link lasts. A ``remote`` host
    has made its own address and secret.
    """
    now = store.mint.now()
    secret = remote[1].secret if remote is not None else store.mint.secret()
    url = remote[0] if remote is not None else f"{base.rstrip('/')}/share/{session_id}"
    hosted = HostedShare(
        id=session_id,
        secret_hash=hashed(secret),
        include=include,
        created=now,
        expires=now + expires_ms if expires_ms is not None else None,
        masks=tuple(one for one in masks if len(one.value) <= MASK_CHARS_MAX)[:MASKS_MAX],
        remote=remote[1] if remote is not None else None,
    )
    await store.journal.change(session_id, lambda view: [e.SessionShared(share=Share(url=url), hosted=hosted)])
    return ShareLink(
        id=hosted.id,
        session_id=session_id,
        secret=secret,
        url=url if remote is not None else f"{url}#{secret}",
        include=include,
        expires=hosted.expires,
        report=report or RedactionReport(),
    )


async def unshare(store: Store, session_id: str) -> Session:
    """Withdraw the link to a session. Without one, nothing is recorded."""
    changed = await store.journal.change(
        session_id,
        lambda view: [e.SessionUnshared()] if view.session.share is not None or view.hosted is not None else [],
    )
    return await store.queries.whole(changed.view.session)


async def opened(store: Store, share_id: str, secret: str) -> tuple[Session, HostedShare]:
    """The session behind a link. Raises NotFound with one message for every reason."""
    hosted = await store.queries.hosted(share_id) if is_key((share_id,)) else None
    # The comparison is made in any case, and in constant time: how long it takes tells nothing of the hash.
    is_right = compare_digest(hashed(secret), hosted.secret_hash if hosted is not None else _NO_HASH)
    if hosted is None or not is_right or is_expired(hosted, store.mint.now()):
        raise NotFound(GONE)
    return await store.queries.session(share_id), hosted


def is_expired(hosted: HostedShare, now: int) -> bool:
    """Whether the time of a link is over."""
    return hosted.expires is not None and now >= hosted.expires


def hashed(secret: str) -> str:
    """The hash of a secret. It is drawn by lot and long, so that a slow hash would add nothing."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
