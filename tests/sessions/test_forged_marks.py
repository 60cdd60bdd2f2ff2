"""Nobody can read another session's blob by writing its mark."""

from turnkeeper.app import Turnkeeper
from turnkeeper.core.blobs import MARK
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.model.event import TodosSet
from turnkeeper.model.todo import Todo


async def test_a_text_that_names_another_sessions_blob_stays_the_text_it_is(tk: Turnkeeper) -> None:
    owner, thief = await tk.create(title="Owner"), await tk.create(title="Thief")
    secret = "secret words " * BLOB_CHARS_MIN
    await tk.store.journal.append(owner.id, TodosSet(todos=(Todo(content=secret, status="open", priority="high"),)))
    [(key, _)] = await tk.store.engine.scan(("blob",))
    forged = MARK + key[-1]
    renamed = await tk.update(thief.id, lambda session: session.but(metadata={"note": forged}))
    assert renamed.metadata is not None
    assert (await tk.get(thief.id)).metadata == {"note": forged}
    assert (await tk.get((await tk.fork(thief.id)).id)).metadata == {"note": forged}
    assert not await tk.store.engine.scan(("blobuser", key[-1], thief.id))
    assert (await tk.doctor()).ok
