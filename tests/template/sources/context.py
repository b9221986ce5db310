"""The variables that all cases are rendered with."""

CONTEXT = {
    "s": "Hello World",
    "u": "größe Ünïcode 😀x",
    "e": "",
    "ws": "  \t pad \n ",
    "lines": "a\nb\r\n\nc\x0bd",
    "html": "<a href=\"x\">&'</a>",
    "n": 42,
    "f": 2.5,
    "neg": -7,
    "z": 0,
    "t": True,
    "nn": None,
    "l": [3, 1, 2],
    "ls": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": [1, 2], "C": {"x": "y"}},
    "items": [1, 2],
    "keys": "shadow",
    "users": [
        {"name": "Bob", "age": 30, "tags": ["x"]},
        {"name": "alice", "age": 25, "tags": []},
        {"name": "Carl", "age": 30},
    ],
    "nested": [{"v": 1, "c": [{"v": 2, "c": [{"v": 3}]}, {"v": 4}]}, {"v": 5}],
    "messages": [
        {"role": "user", "content": "Hi\n"},
        {"role": "assistant", "content": " yo ",
         "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1, "b": "x<y"}}}]},
    ],
}
