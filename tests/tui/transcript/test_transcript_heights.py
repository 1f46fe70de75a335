from hypothesis import given
from hypothesis import strategies as st

from pi_tui.tui.transcript.heights import Heights


@given(
    st.lists(st.integers(0, 9), max_size=40),
    st.lists(st.integers(0, 9), max_size=20),
    st.lists(st.tuples(st.integers(0, 59), st.integers(0, 9)), max_size=30),
)
def test_sums_and_search_agree_with_a_plain_list(
    start: list[int], appended: list[int], changes: list[tuple[int, int]]
) -> None:
    plain = list(start)
    heights = Heights(start)
    for height in appended:
        plain.append(height)
        heights.append(height)
    for index, height in changes:
        if index < len(plain):
            plain[index] = height
            heights.set(index, height)
    assert [heights.top(n) for n in range(len(plain) + 1)] == [
        sum(plain[:n]) for n in range(len(plain) + 1)
    ]
    assert heights.total == sum(plain)
    covering = [(index, row) for index, height in enumerate(plain) for row in range(height)]
    assert [heights.find(position) for position in range(len(covering))] == covering


def test_positions_outside_are_clamped() -> None:
    heights = Heights([2, 3])
    assert heights.find(-5) == (0, 0)
    assert heights.find(99) == (1, 2)
