"""The addresses of pages: folders below the site's root, and links between them."""

from urllib.parse import quote

from cudaredist.formats.names import CHANNEL_TITLES, Channel

_RESERVED = frozenset(
    {"archives", "assets", "compilers", "gpus", "packages", "search", "sets", "wheels"}
)
PAGE_NAME = "index.html"


def _segment(name: str) -> str:
    """Return the folder for a name.

    Names of products are folders next to those of the site, so a product with a reserved name gets
    another folder.
    """
    safe = quote(name, safe="+-_.~")
    return safe if safe.strip(".") else safe.replace(".", "%2E")


def product_address(redist: str) -> str:
    """Return the address of a product's page, such as `cuda`."""
    folder = _segment(redist)
    return f"%{ord(folder[0]):02X}{folder[1:]}" if folder in _RESERVED else folder


def release_address(redist: str, release: str) -> str:
    """Return the address of a release's page, such as `cuda/13.0.2`."""
    return f"{product_address(redist)}/{_segment(release)}"


def compare_address(redist: str) -> str:
    """Return the address of the page that compares a product's releases."""
    return f"{product_address(redist)}/compare"


def compare_script_path(redist: str) -> str:
    """Return the path of the script with the facts of a product's releases."""
    return f"assets/compare/{product_address(redist)}.js"


def package_address(package: str) -> str:
    """Return the address of a package's page."""
    return f"packages/{_segment(package)}"


def files_address(package: str) -> str:
    """Return the address of the page with a package's files."""
    return f"{package_address(package)}/files"


def other_kind_address(channel: Channel) -> str:
    """Return the address of the page with the packages of the other kind."""
    return CHANNEL_TITLES[channel]


def gpu_address(capability: str) -> str:
    """Return the address of a capability's page."""
    return f"gpus/{_segment(capability)}"


def set_address(attribute: str, platform: str) -> str:
    """Return the address of a package set's page, such as `sets/cudaPackages_13_0-linux-sbsa`."""
    return f"sets/{_segment(f'{attribute}-{platform}')}"


def relative(target: str, source: str) -> str:
    """Return the link from a page to a file, relative and quoted.

    `source` is the address of a page and `target` the path of a file, both from the site's root.
    """
    up = "../" * (source.count("/") + 1 if source else 0)
    return f"{up}{quote(target)}"


def page_link(address: str, source: str) -> str:
    """Return the link from one page to another.

    It ends with the file's name, because a browser lists the folder for `file://`.
    """
    return relative(f"{address}/{PAGE_NAME}" if address else PAGE_NAME, source)
