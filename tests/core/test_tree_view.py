import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.errors import StorageError
from pi_tui.core.tree import MemorySource, SessionTree, tree_of
from pi_tui.core.tree_layout import TreeLayout
from pi_tui.core.tree_memory import TreeMemory
from pi_tui.core.tree_shape import FILTERS, TreeShape
from pi_tui.core.tree_view import TreeView


class CountingSource(MemorySource):
    def __init__(self, entries):
        super().__init__(entries)
        self.loads = 0

    def load(self, entry_id):
        self.loads += 1
        return super().load(entry_id)


@pytest.fixture
def agent_tree(make):
    """system, u1, call, result, a2, then two branches: u2-a3 and u3-call-result-a5 (the leaf)."""

    def entries():
        return [
            make.entry("u1", None, make.user("first")),
            make.entry("q1", "u1", make.assistant("", "c1"), 1),
            make.entry("t1", "q1", make.result("c1"), 2),
            make.entry("a2", "t1", make.assistant("fine"), 3),
            make.entry("u2", "a2", make.user("second"), 4),
            make.entry("a3", "u2", make.assistant("done"), 5),
            make.label("l1", "a3", "a2", "good", 6),
            make.entry("u3", "a2", make.user("third"), 7),
            make.entry("q2", "u3", make.assistant("", "c2"), 8),
            make.entry("t2", "q2", make.result("c2"), 9),
            make.entry("a5", "t2", make.assistant("other"), 10),
        ]

    return entries


def ids(view):
    return [view.row(number).entry_id for number in range(len(view))]


def settled(tree, memory=None, **options):
    view = TreeView(tree, memory, **options)
    while view.unread_count:
        view.settle_some(10)
    view.relayout()
    return view


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("default", "u1 t1 a2 u2 a3 u3 t2 a5"),
        ("no-tools", "u1 a2 u2 a3 u3 a5"),
        ("user-only", "u1 u2 u3"),
        ("labeled-only", "a2"),
        ("all", "u1 t1 a2 u2 a3 l1 u3 t2 a5"),
    ],
)
def test_each_filter_shows_its_kinds(agent_tree, mode, shown):
    view = settled(tree_of(agent_tree()), default_filter=mode)
    assert ids(view) == shown.split()


@pytest.mark.parametrize("mode", FILTERS)
def test_an_answer_of_calls_only_is_hidden_unless_it_is_the_leaf(agent_tree, mode):
    view = settled(tree_of(agent_tree()[:2]), default_filter=mode)
    assert ("q1" in ids(view)) == (mode not in ("user-only", "labeled-only"))
    later = settled(tree_of(agent_tree()), default_filter=mode)
    assert "q1" not in ids(later)


@pytest.mark.parametrize("stop", ["aborted", "error"])
def test_an_answer_of_calls_that_was_cut_short_is_shown(make, stop):
    entries = make.chain(
        ("u", make.user()), ("q", make.assistant("", "c", stop=stop)), ("v", make.user())
    )
    assert ids(settled(tree_of(entries))) == ["u", "q", "v"]


def test_siblings_stand_by_time_wherever_the_leaf_is(agent_tree):
    tree = tree_of(agent_tree())
    before = ids(settled(tree))
    tree.move_leaf("a3")
    view = settled(tree)
    assert ids(view) == before
    assert [view.row(n).entry_id for n in range(len(view)) if view.row(n).on_path] == [
        "u1", "t1", "a2", "u2", "a3",
    ]  # fmt: skip


def test_chains_are_flat_and_forks_move_in_with_their_connectors(agent_tree):
    view = settled(tree_of(agent_tree()))
    drawn = {view.row(n).entry_id: view.gutter(n, 0, 9) for n in range(len(view))}
    assert drawn["a2"] == []
    assert drawn["u2"] == ["branch"]
    assert drawn["a3"] == ["line", "blank"]
    assert drawn["u3"] == ["last"]
    assert drawn["a5"] == ["blank", "blank"]


def test_the_selection_opens_at_the_leaf_and_survives_filters(agent_tree):
    view = settled(tree_of(agent_tree()))
    assert view.selected_id == "a5"
    view.set_filter("user-only")
    assert view.selected_id == "u3"  # its nearest visible ancestor
    view.set_filter("default")
    assert view.selected_id == "a5"
    view.move(-1)
    view.set_filter("no-tools")
    view.move(-1)
    view.set_filter("all")
    assert view.selected_id == "a3"  # what was moved to meanwhile


def test_moves_wrap_and_pages_do_not(agent_tree):
    view = settled(tree_of(agent_tree()))
    view.move(1, wrap=True)
    assert view.selected_id == "u1"
    view.move(-1, wrap=True)
    assert view.selected_id == "a5"
    view.move(100)
    assert view.selected_id == "a5"


def test_folding_hides_counts_and_jumps(agent_tree):
    view = settled(tree_of(agent_tree()))
    view.fold_or_up()
    assert view.selected_id == "u3"
    view.fold_or_up()
    row = view.row(view.selected_row)
    assert (row.folded, row.hidden, ids(view)[-1]) == (True, 2, "u3")
    view.fold_or_up()
    assert view.selected_id == "u1"  # the trunk: up to the root
    view.unfold_or_down()
    assert view.selected_id == "u2"  # the next start of a branch
    view.unfold_or_down()
    assert view.selected_id == "a3"  # the end of this one
    view.select("u3")
    view.unfold_or_down()
    assert ids(view)[-1] == "a5"


def test_a_folded_branch_stands_for_the_selection_inside_it(agent_tree):
    view = settled(tree_of(agent_tree()))
    number = ids(view).index("u3")
    assert view.toggle_fold(number)
    view.select("a5")
    assert view.selected_id == "u3"
    assert not view.toggle_fold(ids(view).index("a2"))


def test_a_filter_unfolds_everything(agent_tree):
    view = settled(tree_of(agent_tree()))
    view.toggle_fold(ids(view).index("u3"))
    view.toggle_filter("no-tools")
    assert view.filter == "no-tools" and "a5" in ids(view)
    view.toggle_filter("no-tools")
    assert view.filter == "default"
    view.cycle_filter(-1)
    assert view.filter == "all"


def test_a_search_keeps_root_question_and_forks_of_its_hits(agent_tree):
    view = settled(tree_of(agent_tree()))
    view.begin_search()
    view.add_hits(["t2"])
    view.relayout()
    assert ids(view) == ["u1", "a2", "u3", "t2"]
    rows = {view.row(n).entry_id: view.row(n) for n in range(len(view))}
    assert [key for key, row in rows.items() if row.hit] == ["t2"]
    assert [key for key, row in rows.items() if row.skipped] == ["a2"]  # t1 is left out
    assert view.selected_id == "t2" and (view.hit_number, view.hit_count) == (1, 1)
    view.end_search()
    assert view.selected_id == "t2" and len(view) == 8


def test_hits_are_gone_through_in_both_directions_and_around(agent_tree):
    view = settled(tree_of(agent_tree()))
    view.begin_search()
    view.relayout()
    assert not view.next_hit(1)
    view.add_hits(["t1", "a3", "a5"])
    view.relayout()
    seen = [view.selected_id]
    for step in (1, 1, -1, -1):
        assert view.next_hit(step)
        seen.append(view.selected_id)
    assert seen == ["a5", "t1", "a3", "t1", "a5"]


def test_hits_the_filter_hides_are_no_rows(agent_tree):
    view = settled(tree_of(agent_tree()), default_filter="no-tools")
    view.begin_search()
    view.add_hits(["t1", "a3", "gone"])
    view.relayout()
    assert view.hit_count == 1 and "t1" not in ids(view)
    assert not view.is_shown_kind("t1") and view.is_shown_kind("a3")


def test_hidden_branches_are_left_out_unless_one_is_on_them(agent_tree):
    tree = tree_of(agent_tree())
    view = settled(tree, hidden={"u2"})
    assert ids(view) == ["u1", "t1", "a2", "u3", "t2", "a5"]
    assert view.hidden_count == 2
    view.toggle_hidden()
    assert "u2" in ids(view) and view.row(ids(view).index("u2")).hidden_branch
    view.toggle_hidden()
    tree.move_leaf("a3")
    view.refresh()
    assert "a3" in ids(view)


@pytest.mark.parametrize("mode", FILTERS)
def test_the_nearest_visible_row_above_the_leaf_is_here(agent_tree, make, mode):
    tree = tree_of([*agent_tree(), make.label("l2", "a5", "a5", "mine", 20)])
    view = settled(tree)
    view.set_filter(mode)
    here = [row.entry_id for row in map(view.row, range(len(view))) if row.is_leaf]
    expected = {"user-only": "u3", "labeled-only": "a5", "all": "l2"}
    assert here == [expected.get(mode, "a5")]


def test_an_answer_of_calls_stays_visible_below_a_label(agent_tree, make):
    tree = tree_of([*agent_tree()[:9], make.label("l2", "q2", "q2", "mine", 20)])
    view = settled(tree)
    assert ids(view)[-1] == "q2" and view.row(len(view) - 1).is_leaf


def test_a_folded_branch_is_where_one_is_and_a_hit_is_not(agent_tree):
    view = settled(tree_of(agent_tree()))
    view.select("u3")
    view.fold_or_up()
    assert view.row(view.selected_row).is_leaf
    view.begin_search()
    view.add_hits(["t2"])
    view.relayout()
    assert not any(view.row(number).is_leaf for number in range(len(view)))


def test_an_entry_is_revealed_out_of_folds_and_hidden_branches(agent_tree):
    view = settled(tree_of(agent_tree()), hidden={"u2"})
    assert view.select("a3") and view.selected_id == "a2"
    assert view.reveal("a3") and view.selected_id == "a3"
    view.select("u2")
    view.fold_or_up()
    assert "a3" not in ids(view)
    assert view.reveal("a3") and view.selected_id == "a3"
    assert not view.reveal("nowhere")


def test_a_branch_starts_where_it_leaves_the_path(agent_tree):
    view = settled(tree_of(agent_tree()))
    assert view.branch_start("a3") == "u2"
    assert view.branch_start("a2") is None
    view.tree.move_leaf("t1")
    view.refresh()
    assert view.branch_start("a2") == "a2"  # one branch goes on from here


def test_appended_entries_are_taken_in(agent_tree, make):
    tree = tree_of(agent_tree())
    view = settled(tree)
    view.move(-1)
    tree.append(make.entry("u9", "a5", make.user("more"), 20))
    view.refresh()
    assert ids(view)[-1] == "u9" and view.selected_id == "t2"
    assert view.row(len(view) - 1).is_leaf


def test_the_empty_tree_has_no_rows():
    view = TreeView(tree_of([]))
    view.move(1, wrap=True)
    view.fold_or_up()
    view.unfold_or_down()
    assert (len(view), view.selected_id, view.hit_count) == (0, None, 0)


def test_only_answers_about_to_be_seen_are_decoded(make):
    entries, parent = [], None
    for n in range(3000):
        kind = make.assistant("", f"c{n}") if n % 2 else make.user(f"{n}")
        entries.append(make.entry(f"e{n}", parent, kind, n))
        parent = f"e{n}"
    source = CountingSource(entries)
    from pi_tui.core.entries import head_of

    tree = SessionTree([head_of(entry) for entry in entries], source)
    memory = TreeMemory()
    view = TreeView(tree, memory)
    assert source.loads == 0
    view.settle(20, 20)
    assert 0 < source.loads <= 100
    quiet_near = [f"e{n}" for n in range(2970, 2999) if n % 2]
    assert not set(quiet_near) & set(ids(view))
    loads = source.loads
    again = TreeView(tree, memory)
    again.settle(10, 10)
    assert source.loads == loads  # what was found out is remembered


def test_an_answer_that_cannot_be_read_stays_visible(make):
    entries = make.chain(("u", make.user()), ("a", make.assistant("x")), ("v", make.user()))
    tree = tree_of(entries)

    def read(entry_id):
        raise StorageError("gone")

    view = TreeView(tree, read=read)
    view.settle(5, 5)
    assert ids(view) == ["u", "a", "v"]


def test_a_chain_of_100_000_needs_no_recursion(make):
    heads = [make.head(f"e{n}", f"e{n - 1}" if n else None) for n in range(100_000)]
    view = TreeView(SessionTree(heads, MemorySource()))
    assert len(view) == 100_000 and view.row(99_999).level == 0
    view.fold_or_up()
    assert view.selected_row == 0


def test_a_comb_of_many_forks_finds_its_gutter(make):
    heads = [make.head("r", None)]
    for n in range(20_000):
        parent = f"a{n - 1}" if n else "r"
        stamp = f"2025-01-01T00:00:{n % 60:02d}.000Z"
        heads += [make.head(f"a{n}", parent, stamp), make.head(f"b{n}", parent, stamp)]
    view = TreeView(SessionTree(heads, MemorySource(), "a19999"))
    row = view.selected_row
    level = view.row(row).level
    assert level == 20_000
    assert view.gutter(row, level - 3, 9) == ["line", "line", "branch"]
    assert view.gutter(row, 0, 2) == ["line", "line"]


@st.composite
def random_trees(draw):
    size = draw(st.integers(1, 40))
    return [None if n == 0 else draw(st.integers(-1, n - 1)) for n in range(size)]


@given(random_trees(), st.data())
@settings(max_examples=120, deadline=None)
def test_layout_equals_a_plain_recursive_one(parents, data):
    from pi_tui.core.entries import EntryHead

    parents = [None if p in (None, -1) else p for p in parents]
    stamp = "2025-01-01T00:00:00.000Z"
    heads = [
        EntryHead(str(n), None if p is None else str(p), "message", stamp, "user")
        for n, p in enumerate(parents)
    ]
    shape = TreeShape(SessionTree(heads, MemorySource()))
    flags = [data.draw(st.booleans()) for _ in parents]
    shown = [at for at in range(len(shape)) if flags[at]]
    folded = {at for at in shown if data.draw(st.integers(0, 5)) == 0}
    layout = TreeLayout(shape, shown, folded)

    children = {at: [] for at in [-1, *shown]}
    for at in shown:
        above = shape.parents[at]
        while above >= 0 and not flags[above]:
            above = shape.parents[above]
        children[above].append(at)

    expected = []

    def walk(at, level, gutter, parent_starts, is_start, last):
        own = [*gutter, "last" if last else "branch"] if is_start else gutter
        expected.append((at, level, own))
        if at in folded:
            return
        below = children[at]
        inner = [*gutter, "blank" if last else "line"] if is_start else gutter
        for child in below:
            fork = len(below) > 1
            if fork:
                walk(child, level + 1, inner, is_start, True, child == below[-1])
            elif is_start:
                walk(child, level + 1, [*inner, "blank"], is_start, False, False)
            else:
                walk(child, level, inner, is_start, False, False)

    roots = children[-1]
    for root in roots:
        walk(root, len(roots) > 1, [], False, len(roots) > 1, root == roots[-1])
    got = [
        (at, layout.levels[row], layout.gutter(row, 0, 99)) for row, at in enumerate(layout.rows)
    ]
    assert got == expected
    for row in range(len(layout)):
        first = random.Random(row).randrange(5)
        whole = layout.gutter(row, 0, 99)
        assert layout.gutter(row, first, 2) == whole[first : first + 2]


def test_opening_again_lays_nothing_out(agent_tree):
    tree, memory = tree_of(agent_tree()), TreeMemory()
    first = settled(tree, memory)
    shown, made = ids(first), memory.layout
    again = TreeView(tree, memory)
    assert ids(again) == shown and memory.layout is made
    again.set_filter("user-only")
    assert ids(again) == ["u1", "u2", "u3"] and memory.layout is not made


@given(random_trees())
@settings(max_examples=60, deadline=None)
def test_entries_are_found_and_so_are_their_paths(parents):
    from pi_tui.core.entries import EntryHead

    stamps = [f"2025-01-01T00:00:{n % 3:02d}.000Z" for n in range(len(parents))]
    heads = [
        EntryHead(str(n), None if p in (None, -1) else str(p), "message", stamps[n], "user")
        for n, p in enumerate(parents)
    ]
    tree = SessionTree(heads, MemorySource())
    shape = TreeShape(tree)
    assert shape.ids == list(tree.walk())
    for at, entry_id in enumerate(shape.ids):
        assert shape.find(entry_id) == at
        assert [shape.ids[one] for one in shape.path(at)] == tree.path_ids(entry_id)
        assert shape.ids[at : shape.ends[at]] == [
            other for other in shape.ids if entry_id in tree.path_ids(other)
        ]
    assert shape.find("none") is None and shape.find(None) is None


def test_odd_parents_still_give_every_entry_one_place(make):
    heads = [
        make.head("a", "c"),
        make.head("b", "a"),
        make.head("c", "b"),
        make.head("self", "self"),
        make.head("lost", "nowhere"),
    ]
    shape = TreeShape(SessionTree(heads, MemorySource()))
    assert shape.ids == ["a", "b", "c", "self", "lost"]
    assert shape.parents == [-1, 0, 1, -1, -1] and shape.roots == [0, 3, 4]
