"""Ranges of CUDA releases in sentences."""

from collections.abc import Collection, Sequence

from cudaredist.grouping import grouped
from cudaredist.primitives import Version


def release_spans(labels: Collection[Version], known: Sequence[Version]) -> list[str]:
    """Return releases as ranges, such as `11.0 to 12.2`: minors if all of their patches count."""
    spans: list[list[Version]] = []
    is_in_span = False
    for label in known:
        if label in labels:
            if not is_in_span:
                spans.append([])
            spans[-1].append(label)
        is_in_span = label in labels
    patches = grouped((label.line, label) for label in known)

    def name(label: Version, span: Sequence[Version]) -> str:
        is_whole_line = all(patch in span for patch in patches[label.line])
        return label.line if is_whole_line else str(label)

    texts = []
    for span in spans:
        first, last = name(span[0], span), name(span[-1], span)
        texts.append(first if first == last else f"{first} to {last}")
    return texts
