"""The products of bulletins that are ours."""

import re

from cudaredist.formats.advisories import AdvisoryPolicy, Product
from cudaredist.redists import REDISTS

_plain = re.compile(r"^nvidia |\b(library|libraries)$", re.IGNORECASE)


def product_called(name: str, policy: AdvisoryPolicy) -> Product | None:
    """Return the product with exactly this name, None for products that are not ours.

    "NVIDIA" and "Library" do not count. A name that only contains one of ours, such as
    TensorRT-LLM, is another product.
    """
    plain = plain_name(name)
    for known, product in policy.products.items():
        if plain_name(known) == plain:
            return None if product.kind == "other" else product
    for redist in REDISTS.values():
        if plain in {redist.name.casefold(), redist.title.casefold()}:
            reason = "The name of a redistributable"
            return Product(kind="packages", redist=redist.name, reason=reason, reference=name)
    return None


def is_undecided(name: str, policy: AdvisoryPolicy) -> bool:
    """Check if a product may be ours, and the policy does not decide it.

    Its name contains that of a redistributable or component, such as "cuDNN for Jetson".
    """
    decided = {plain_name(known) for known in policy.products}
    if plain_name(name) in decided or product_called(name, policy) is not None:
        return False
    redists = (text for one in REDISTS.values() for text in (one.name, plain_name(one.title)))
    components = (text for one in policy.components.values() for text in one.spellings)
    return any(
        re.search(rf"(?<!\w){re.escape(ours)}(?!\w)", name, re.IGNORECASE)
        for ours in (*redists, *components)
    )


def plain_name(name: str) -> str:
    """Return a product's name for comparisons."""
    return " ".join(_plain.sub("", " ".join(name.split())).casefold().split())
