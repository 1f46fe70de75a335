"""Shape, labels, extraction, context edits, navigation."""

from pi_tui.core.context_edits import PlannedEdit, plan_context_edit
from pi_tui.core.entries import entry_from_data
from pi_tui.core.extract import extract_path
from pi_tui.core.navigation import plan_navigation
from pi_tui.core.tree import tree_of

GROUP = "tree"


def shape(tree):
    nodes = []
    for entry_id in tree.walk():
        node = {"id": entry_id, "children": list(tree.children(entry_id))}
        if tree.label(entry_id) is not None:
            node["label"] = tree.label(entry_id)
            node["labelTimestamp"] = tree.label_timestamp(entry_id)
        nodes.append(node)
    return {
        "roots": list(tree.roots),
        "nodes": nodes,
        "leafId": tree.leaf_id,
        "sessionName": tree.session_name,
        "leafPath": tree.path_ids(),
    }


def extracted(tree, lines, leaf_id):
    by_id = {line["id"]: line for line in lines}
    count = iter(range(1, 10_000))
    copied = extract_path(
        [by_id[entry_id] for entry_id in tree.path_ids(leaf_id)],
        tree.labels,
        lambda: f"L{next(count)}",
    )
    names = {"label": ("targetId", "label"), "compaction": ("firstKeptEntryId",)}
    rows = []
    for entry in copied:
        row = {name: entry[name] for name in ("id", "parentId", "type")}
        row.update({name: entry[name] for name in names.get(entry["type"], ()) if name in entry})
        rows.append(row)
    return {"entries": rows}


def edited(tree, given):
    planned = plan_context_edit(tree, given["targetId"], given["replacement"])
    if isinstance(planned, PlannedEdit):
        return {
            "ok": True,
            "storedReplacement": planned.replacement,
            "parentId": planned.parent_id,
        }
    return {"ok": False, "reason": planned.reason}


def navigated(tree, target_id):
    plan = plan_navigation(tree, target_id)
    return {"newLeafId": plan.leaf_id, "editorText": plan.editor_text}


def test_tree(case, expected, session_lines):
    given = case["input"]
    lines = session_lines(given["session"])
    tree = tree_of(map(entry_from_data, lines))
    if case["op"] == "tree":
        assert shape(tree) == expected
        return
    if case["op"] == "extract":
        assert extracted(tree, lines, given["leafId"]) == expected
        return
    if given.get("currentLeafId", given.get("leafId")) is not None:
        tree.move_leaf(given.get("currentLeafId", given.get("leafId")))
    if case["op"] == "append_context_edit":
        assert edited(tree, given) == expected
    else:
        assert navigated(tree, given["targetId"]) == expected
