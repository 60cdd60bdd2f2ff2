"""A tree that opencode wrote, opened as a store, becomes a store."""

from pathlib import Path

from opencode_trees import a_tree

import turnkeeper


async def test_an_opencode_tree_opened_as_a_store_becomes_one(tmp_path: Path) -> None:
    a_tree(tmp_path, "2")
    store = f"files:{tmp_path / 'storage'}"
    async with turnkeeper.open(store) as tk:
        [session] = (await tk.list(archived=True, roots=False)).items
        messages = [message async for message in tk.iter_messages(session.id, reverse=False)]
        assert messages
        assert (await tk.doctor()).ok
    async with turnkeeper.open(store) as tk:
        await tk.rename(session.id, "Ours now")
        assert (await tk.get(session.id)).title == "Ours now"
        assert [one async for one in tk.iter_messages(session.id, reverse=False)] == messages
        assert (await tk.doctor()).ok
