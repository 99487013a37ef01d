"""Random conditions of the C preprocessor, and their values by gcc."""

import re
import subprocess
from collections.abc import Sequence

from hypothesis import strategies as st


def expressions_over(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return expressions with all operators over some operands."""
    return st.recursive(leaves, _larger, max_leaves=8)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = re.findall(r"\S+", "+ - * / % << >> < <= > >= == != & | ^ && ||")
    return st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(operators), inner),
        st.builds("({})".format, inner),
        # A space, because two adjacent signs are another operator.
        st.builds("{} {}".format, st.sampled_from("!~-+"), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    )


def truth_by_gcc(several: Sequence[str], *options: str) -> list[bool | None]:
    """Return whether conditions are true, None for invalid ones."""
    text = "".join(f"#if {expression}\n#error\n#endif\n" for expression in several)
    result = subprocess.run(
        ["gcc", "-E", "-undef", "-xc++", "-std=c++17", *options, "-", "-o", "/dev/null"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    answers: list[bool | None] = [False] * len(several)
    for line, message in re.findall(r"<stdin>:(\d+):\d+: error: (.*)", result.stderr):
        index = (int(line) - 1) // 3
        if not message.startswith("#error"):
            answers[index] = None
        elif answers[index] is False:
            answers[index] = True
    return answers
