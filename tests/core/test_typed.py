"""Configurations as plain values, and how two of them differ."""

from dris.core.typed import difference


def test_what_differs_is_named_with_both_values():
    before = {"task": {"joint_speed": 1.0, "mount": "down"}, "seed": 0, "gone": 3}
    assert difference(before, {"task": {"joint_speed": 1.0, "mount": "down"}, "seed": 0, "gone": 3}) == ""
    now = {"task": {"joint_speed": 0.9, "mount": "down"}, "seed": 5, "gone": 3}
    assert difference(before, now) == "seed: 0, now 5; task.joint_speed: 1.0, now 0.9"


def test_of_many_differences_three_are_named_and_the_rest_counted():
    before, now = ({name: value for name in "abcde"} for value in (1, 2))
    assert difference(before, now) == "a: 1, now 2; b: 1, now 2; c: 1, now 2; and 2 more"
    assert difference({"a": 1}, {"b": 2}) == "a: 1, now None; b: None, now 2"
