"""The session tree against a simple model, and against files that are not sound."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.errors import StorageError
from pi_tui.core.pins import PIN_TYPE, pin_data
from pi_tui.core.projection import project
from pi_tui.core.tree import MemorySource, SessionTree, tree_of


def tree_of_heads(heads, leaf_id=...):
    extra = {} if leaf_id is ... else {"leaf_id": leaf_id}
    return SessionTree(heads, MemorySource(), **extra)


def simple_path(parents, leaf):
    """The path in a sound tree, the slow and obvious way."""
    path = []
    while leaf is not None:
        path.insert(0, leaf)
        leaf = parents[leaf]
    return path


# Each number chooses a parent among what is there: one more than all means no parent.
sound_trees = st.lists(st.integers(0, 1000), min_size=1, max_size=40)


@given(sound_trees)
@settings(max_examples=60)
def test_random_trees_agree_with_a_simple_model(make, choices):
    parents, tree = {}, tree_of([])
    for i, choice in enumerate(choices):
        known = [*parents, None]
        parents[f"e{i}"] = known[choice % len(known)]
        tree.append(make.entry(f"e{i}", parents[f"e{i}"], make.user(), at=i))
    reopened = tree_of_heads([tree.head(entry_id) for entry_id in tree.ids()])
    for shown in (tree, reopened):
        assert shown.ids() == list(parents) and len(shown) == len(parents)
        assert shown.leaf_id == list(parents)[-1]
        assert list(shown.roots) == [e for e, parent in parents.items() if parent is None]
        for entry_id in parents:
            assert shown.path_ids(entry_id) == simple_path(parents, entry_id)
            children = [e for e, parent in parents.items() if parent == entry_id]
            assert list(shown.children(entry_id)) == children
        assert sorted(shown.walk()) == sorted(parents)


@given(sound_trees, st.integers(0, 1000), st.integers(0, 1000))
@settings(max_examples=60)
def test_common_ancestor_is_the_deepest_shared_entry(make, choices, a, b):
    heads, ids = [], []
    for i, choice in enumerate(choices):
        known = [*ids, None]
        heads.append(make.head(f"e{i}", known[choice % len(known)]))
        ids.append(f"e{i}")
    tree = tree_of_heads(heads)
    a, b = ids[a % len(ids)], ids[b % len(ids)]
    shared = [e for e in tree.path_ids(a) if e in set(tree.path_ids(b))]
    assert tree.common_ancestor(a, b) == (shared[-1] if shared else None)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 11)), max_size=30))
@settings(max_examples=150)
def test_any_heap_of_heads_gives_a_tree_that_ends(make, rows):
    """Repeated ids, rings, missing parents: every walk ends and every entry can be reached."""
    heads = [make.head(f"e{i}", None if parent == 11 else f"e{parent}") for i, parent in rows]
    tree = tree_of_heads(heads)
    assert sorted(tree.walk()) == sorted(tree.ids())
    for entry_id in tree.ids():
        path = tree.path_ids(entry_id)
        assert path[-1] == entry_id and path[0] in tree.roots
        assert len(set(path)) == len(path)


def test_the_later_line_of_a_repeated_id_wins(make):
    tree = tree_of_heads([make.head("a", None), make.head("b", "a"), make.head("b", None)])
    assert tree.ids() == ["a", "b"]
    assert tree.roots == ("a", "b")


def test_an_entry_that_is_its_own_parent_is_a_root(make):
    tree = tree_of_heads([make.head("a", None), make.head("b", "b")])
    assert tree.path_ids() == ["b"]
    assert tree.roots == ("a", "b")


def test_a_ring_is_opened_at_its_first_member_in_the_file(make):
    tree = tree_of_heads([make.head("a", "c"), make.head("b", "a"), make.head("c", "b")])
    assert tree.roots == ("a",)
    assert tree.path_ids() == ["a", "b", "c"]


def test_a_chain_of_100_000_entries(make):
    count = 100_000
    heads = [make.head(f"e{i}", f"e{i - 1}" if i else None) for i in range(count)]
    tree = tree_of_heads(heads)
    assert len(tree.path_ids()) == count
    assert sum(1 for _ in tree.walk()) == count
    assert tree.common_ancestor("e99999", "e5") == "e5"
    tree.append(make.entry("new", "e99999", make.user()))
    assert tree.path_ids()[-2:] == ["e99999", "new"]


def test_children_by_time_and_unreadable_times_by_their_place(make):
    tree = tree_of_heads(
        [
            make.head("root", None),
            make.head("late", "root", "2025-01-03T00:00:00Z"),
            make.head("beside-late", "root", "no time at all"),
            make.head("early", "root", "2025-01-01T00:00:00Z"),
            make.head("same", "root", "2025-01-01T00:00:00.000Z"),
        ]
    )
    assert tree.children("root") == ("early", "same", "late", "beside-late")


def test_a_child_appended_later_is_among_the_children(make):
    tree = tree_of([make.entry("a", None, make.user())])
    assert tree.children("a") == ()
    tree.append(make.entry("b", "a", make.user()))
    tree.append(make.entry("r", "gone", make.user()))
    assert tree.children("a") == ("b",)
    assert tree.roots == ("a", "r")


def test_the_leaf(make):
    tree = tree_of(make.chain(("a", make.user()), ("b", make.user())), leaf_id="nowhere")
    assert tree.leaf_id == "b"
    tree.move_leaf("a")
    assert tree.path_ids() == ["a"]
    tree.move_leaf(None)
    assert tree.path_ids() == [] and tree.path() == []
    assert tree.path_ids("nowhere") == ["a", "b"]
    with pytest.raises(KeyError):
        tree.move_leaf("nowhere")
    tree.append(make.entry("c", None, make.user()))
    assert tree.leaf_id == "c"


def test_an_id_is_appended_once(make):
    tree = tree_of([make.entry("a", None, make.user())])
    with pytest.raises(ValueError, match="already"):
        tree.append(make.entry("a", None, make.user()))
    assert len(tree) == 1


def test_a_returned_path_is_the_callers_own(make):
    tree = tree_of(make.chain(("a", make.user()), ("b", make.user())))
    tree.path_ids().clear()
    assert tree.path_ids() == ["a", "b"]


def test_labels_keep_the_order_of_their_first_setting(make):
    tree = tree_of(
        make.chain(
            ("a", make.user()),
            ("b", make.user()),
            lambda p: make.label("l1", p, "a", "one"),
            lambda p: make.label("l2", p, "b", "two"),
            lambda p: make.label("l3", p, "a", "uno", at=5),
        )
    )
    assert [(each.target_id, each.text) for each in tree.labels] == [("a", "uno"), ("b", "two")]
    assert tree.label_timestamp("a") == tree.head("l3").timestamp
    tree.append(make.label("l4", "l3", "a", ""))
    tree.append(make.label("l5", "l4", "a", "again"))
    assert [each.target_id for each in tree.labels] == ["b", "a"]
    assert tree.label("nowhere") is None


def test_bodies_are_loaded_when_asked_for_and_a_bounded_number_is_kept(make):
    entries = make.chain(*((f"e{i}", make.user(f"text {i}")) for i in range(50)))

    class Counting(MemorySource):
        loads = 0

        def load(self, entry_id):
            self.loads += 1
            return super().load(entry_id)

    source = Counting(entries)
    heads = [make.head(e.id, e.parent_id) for e in entries]
    tree = SessionTree(heads, source, decoded_entries=10)
    tree.path_ids()
    assert source.loads == 0
    assert tree.entry("e49").message.content == "text 49"
    tree.entry("e49")
    assert source.loads == 1
    tree.path()
    tree.entry("e0")
    # The walk pushed e49 out before it came to it, and e0 again before it ended.
    assert source.loads == 1 + 50 + 1


def test_a_body_the_source_has_lost_is_an_error_of_the_storage(make):
    tree = tree_of_heads([make.head("a", None)])
    with pytest.raises(StorageError):
        tree.entry("a")
    with pytest.raises(KeyError):
        tree.entry("b")


def test_the_context_path_decodes_nothing_a_compaction_covers(make):
    entries = make.chain(
        *((f"e{i}", make.user()) for i in range(100)),
        lambda p: make.compaction("c", p, "e98"),
        ("z", make.user()),
    )
    tree = tree_of(entries)
    assert [e.id for e in tree.context_path()] == ["e98", "e99", "c", "z"]
    assert project(tree.context_path()) == project(tree.path())


KINDS = ["user", "assistant", "call", "compaction", "edit", "pin", "unpin", "model", "level"]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 1000)), max_size=30))
@settings(max_examples=150)
def test_the_context_path_projects_like_the_whole_path(make, steps):
    entries, parent = [], None
    for i, (kind, number) in enumerate(steps):
        target = entries[number % len(entries)].id if entries else "none"
        fresh = f"e{i}"
        if kind == "compaction":
            made = make.compaction(fresh, parent, target)
        elif kind == "edit":
            made = make.edit(fresh, parent, target)
        elif kind in ("pin", "unpin"):
            made = make.custom(fresh, parent, PIN_TYPE, pin_data(target, pinned=kind == "pin"))
        elif kind == "call":
            entries.append(make.entry(f"{fresh}c", parent, make.assistant("", fresh)))
            made = make.entry(fresh, f"{fresh}c", make.result(fresh))
        elif kind == "assistant":
            made = make.entry(fresh, parent, make.assistant(f"model {i}"))
        else:
            made = make.entry(fresh, parent, make.user(f"text {i}"))
        entries.append(made)
        parent = made.id
    tree = tree_of(entries)
    whole, part = project(tree.path()), project(tree.context_path())
    assert part.messages == whole.messages
    assert part.model == whole.model and part.thinking_level == whole.thinking_level
    assert part.pinned_ids == whole.pinned_ids
