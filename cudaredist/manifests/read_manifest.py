"""Read a manifest's bytes into a frozen `Manifest`."""

import re
from collections.abc import Collection
from contextlib import suppress
from datetime import date
from operator import itemgetter
from typing import Any

from pydantic_core import from_json

from cudaredist.errors import InvalidFileError
from cudaredist.jsontext import is_plain, join_path, kind_of, parse_json
from cudaredist.manifests.field_reader import (
    HEX_DIGITS,
    MD5_DIGITS,
    SHA256_DIGITS,
    SIZE_DIGITS,
    TEXT_LIMIT,
    FieldReader,
    JsonObject,
)
from cudaredist.manifests.manifest_values import Archive, Manifest, Package, Shape
from cudaredist.primitives import (
    ARCHIVE_ENDS,
    KNOWN_PLATFORMS,
    Platform,
    Version,
    differs_little,
    parse_label,
    usual_stem,
)
from cudaredist.words import shown

MANIFEST_LIMIT = 8 << 20
"""Maximum bytes of a manifest, about a hundred times NVIDIA's largest one (75 kB)."""
_FAST_LIMIT = 512 << 10
"""Larger manifests are only parsed with `parse_json`, which limits the memory."""


_SHAPES: tuple[Shape, ...] = ("mixed", "nested", "flat", "early")
"""The first of them that a manifest has is its shape."""
_ARCHIVE_KEYS = frozenset({"sha256", "md5", "size", "relative_path"})
_archive_fields = itemgetter("sha256", "md5", "size", "relative_path")
_PACKAGE_TEXTS = frozenset({"name", "license", "license_path", "version"})
_PACKAGE_KEYS = _PACKAGE_TEXTS | {"cuda_variant"}
_RELEASE_KEYS = frozenset({"release_date", "release_label", "release_product"})


_USUAL_ENDS = {
    platform: ARCHIVE_ENDS[platform.startswith("windows-")] for platform in KNOWN_PLATFORMS
}

_is_date = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_is_usual_name = re.compile(r"[a-z][a-z0-9_]{0,79}").fullmatch
_is_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,127}").fullmatch
_is_known_variant = re.compile(r"cuda[0-9]{1,3}").fullmatch
_is_platform_like = re.compile(r"(?:linux|windows)-.*|source", re.DOTALL).fullmatch
_is_version_like = re.compile(r"[0-9]+(?:\.[0-9]+)*").fullmatch


def read_manifest(data: bytes, *, label: Version | None = None) -> Manifest:
    """Read a manifest's bytes, with the label in its file name if known.

    Raises `InvalidFileError` with all problems, each with the path to its field.
    """
    reader = _ManifestReader()
    manifest = None
    if len(data) <= _FAST_LIMIT and is_plain(data):
        with suppress(ValueError):
            document = from_json(data, allow_inf_nan=False, cache_strings="keys")
            manifest = reader.manifest(document, label)
    # The strict parser takes twice the time. It is not necessary if the reader has validated every
    # value, and the number of keys equals the number of colons: then every key is unique.
    if not manifest or reader.problems or reader.unknown or reader.keys != data.count(b":"):
        reader = _ManifestReader()
        document = parse_json(data, what="manifest", limit=MANIFEST_LIMIT)
        manifest = reader.manifest(document, label)
    if reader.problems:
        raise InvalidFileError("manifest", reader.problems)
    return manifest


# -- the four shapes


def _contradicts(place: str, usual: str) -> str:
    wrong, expected = shown(place, limit=200), shown(usual, limit=200)
    return f"{wrong} contradicts the rest of the manifest, expected {expected}"


def is_real_date(text: str) -> bool:
    """Check for a date such as 2026-01-31."""
    with suppress(ValueError):
        return _is_date(text) is not None and bool(date.fromisoformat(text))
    return False


def _usual_archive(
    package: str, version: Version | None, platform: str, variant: str | None, value: dict[str, Any]
) -> Archive | None:
    """Return the archive if all its fields have NVIDIA's usual form, otherwise None.

    Nearly all archives have, so this single test makes reading fast. `_ManifestReader.archive`
    validates the others field by field.
    """
    if len(value) != len(_ARCHIVE_KEYS) or version is None:
        return None
    try:
        sha256, md5, size, place = _archive_fields(value)
        tag, end = f"_{variant}" if variant else "", _USUAL_ENDS[platform]
        if (
            len(sha256) == SHA256_DIGITS
            and len(md5) == MD5_DIGITS
            # Deleting the digits takes a third of the time of a regular expression.
            and not (sha256 + md5).encode().translate(None, HEX_DIGITS)
            and size.isdigit()
            and size.isascii()
            and size[0] != "0"
            and len(size) <= SIZE_DIGITS
            # The path is safe, because it consists of validated names.
            and place == f"{package}/{platform}/{package}-{platform}-{version.text}{tag}{end}"
        ):
            # Calling the class takes twice the time.
            fields = (package, version, platform, variant, place, sha256, md5, int(size))
            return tuple.__new__(Archive, fields)
    except (AttributeError, KeyError, TypeError):
        pass
    return None


class _ManifestReader(FieldReader):
    """Reader of one document."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[Shape] = set()
        self.keys = 0
        self._package = ""
        """The package that is being read."""
        self._version: Version | None = None
        self._archives: list[Archive] = []

    def manifest(self, document: object, label: Version | None) -> Manifest:
        if not isinstance(document, dict):
            self.problem("", f"expected an object, got {kind_of(document)}")
            document = {}
        packages = []
        self.keys = len(document)
        for key, value in document.items():
            if key in _RELEASE_KEYS:
                self.release_key(key, value)
            elif key.startswith("release_"):
                self.keep_key("", key, value, _RELEASE_KEYS - document.keys())
            elif isinstance(value, dict):
                package = self.package(key, value)
                if package is not None:
                    packages.append(package)
            elif value is None:
                self.problem(join_path("", key), "expected a package (an object), got null")
            else:
                self.keep_key("", key, value, _RELEASE_KEYS - document.keys())
        if not packages and not self.problems:
            self.problem("", "has no package")
        day, product = document.get("release_date"), document.get("release_product")
        return Manifest(
            label=self.label(document.get("release_label"), label),
            shape=next((shape for shape in _SHAPES if shape in self.shapes), "flat"),
            release_date=day if isinstance(day, str) else None,
            release_product=product if isinstance(product, str) else None,
            packages=tuple(packages),
            unknown=tuple(self.unknown),
            warnings=tuple(self.warnings),
        )

    def release_key(self, key: str, value: object) -> None:
        path = join_path("", key)
        if type(value) is not str:
            self.problem(path, f"expected a string, got {kind_of(value)}")
        elif key == "release_date" and not is_real_date(value):
            self.problem(path, f"expected YYYY-MM-DD, got {shown(value)}")
        elif len(value) > TEXT_LIMIT:
            self.problem(path, f"has {len(value)} characters, more than {TEXT_LIMIT}")

    def label(self, inside: object, of_file: Version | None) -> Version | None:
        if type(inside) is not str:
            return of_file
        try:
            label = parse_label(inside)
        except ValueError as error:
            self.problem("release_label", f"{error}, got {shown(inside)}")
            return of_file
        if of_file is not None and of_file != label:
            self.warn("release_label", f"is {label}, but the file's name contains {of_file}")
        return of_file or label

    def package(self, name: str, value: JsonObject) -> Package | None:
        """Read one package, or return None if the object is not a package."""
        is_usual = _is_usual_name(name)
        path = name if is_usual else join_path("", name)
        is_early = False
        if "version" not in value:
            if not value:
                self.problem(path, "is empty")
                return None
            is_modern = not _PACKAGE_TEXTS.isdisjoint(value) or any(map(_is_platform_like, value))
            is_early = not is_modern and all(map(_is_version_like, value))
            has_objects = any(isinstance(item, dict) for item in value.values())
            if not is_modern and not is_early and not has_objects:
                self.keep(path, value)
                return None
        if not is_usual:
            if not _is_name(name):
                self.problem(path, "is not a valid package name")
                return None
            self.warn(path, "is an unusual package name")
        self._package, self._archives = name, []
        return (self.early_package if is_early else self.modern_package)(path, value)

    def early_package(self, path: str, value: JsonObject) -> Package:
        self.shapes.add("early")
        name, versions = self._package, list[Version]()
        for key, platforms in value.items():
            below = f"{path}.{key}"
            version = self.version(path, key, key)
            if not isinstance(platforms, dict):
                self.problem(below, f"expected an object, got {kind_of(platforms)}")
                continue
            if not platforms.keys() - {"release_date"}:
                self.problem(below, "has no platform")
            for platform, place in platforms.items():
                at = join_path(below, platform)
                if platform == "release_date":
                    if not isinstance(place, str) or not is_real_date(place):
                        self.problem(at, "expected YYYY-MM-DD")
                    continue
                self.platform_name(at, platform)
                relative_path = self.path(below, platform, place)
                if version is not None and relative_path is not None:
                    self.compare_path(at, relative_path, usual_stem(name, version, platform, None))
                    archive = (name, version, platform, None, relative_path, None, None, None)
                    self._archives.append(Archive(*archive))
            if version is not None:
                versions.append(version)
        return Package(name, None, None, None, tuple(versions), (), tuple(self._archives))

    def modern_package(self, path: str, value: JsonObject) -> Package:
        name, archives = self._package, self._archives
        version = self._version = self.version(path, "version", value.get("version"))
        variants: list[str] = []
        has_platform = has_variants = is_flat = False
        self.keys += len(value)
        for key, item in value.items():
            if key in _PACKAGE_TEXTS:
                continue
            if isinstance(item, dict):
                self.keys += len(item)
                usual = _usual_archive(name, version, key, None, item)
                if usual is not None:
                    archives.append(usual)
                    has_platform = is_flat = True
                else:
                    has_platform |= self.platform(path, key, item)
                    has_variants = True
            elif key.endswith("_variant") and not differs_little(key, "cuda_variant"):
                variants += self.declared_variants(f"{path}.{key}", key, item)
            elif _is_platform_like(key):
                self.problem(join_path(path, key), f"expected an object, got {kind_of(item)}")
                has_platform = True
            else:
                self.keep_key(path, key, item, _PACKAGE_KEYS - value.keys())
        if not has_platform:
            self.problem(path, "has no platform")
        if is_flat:
            self.shapes.add("flat")
        if variants or has_variants:
            self.compare_variants(path, variants)
        fields = (
            name,
            self.text(path, "name", value.get("name")),
            self.text(path, "license", value.get("license")),
            self.license_path(path, name, value.get("license_path")),
            () if version is None else (version,),
            tuple(variants),
            tuple(archives),
        )
        return tuple.__new__(Package, fields)

    def license_path(self, path: str, package: str, value: object) -> str | None:
        usual = f"{package}/LICENSE.txt"
        if value is None or value == usual:
            return None if value is None else usual
        place = self.path(path, "license_path", value)
        if place is not None and differs_little(place, usual, most=2):
            self.problem(join_path(path, "license_path"), _contradicts(place, usual))
        return place

    def compare_path(self, path: str, place: str, stem: str) -> None:
        """Record a problem if a path differs little from the usual one.

        The usual path consists of package, platform and version. A path that differs more is
        accepted, because NVIDIA has used other forms before, such as `nvidia-imex` for imex.
        """
        usual = [stem + end for end in ARCHIVE_ENDS]
        similar = (other for other in usual if differs_little(place, other, most=2))
        near = None if place in usual else next(similar, None)
        if near is not None:
            self.problem(path, _contradicts(place, near))

    def compare_variants(self, path: str, declared: list[str]) -> None:
        """Warn if a package's declared variants differ from the used ones.

        A single platform may lack some of them.
        """
        used = {archive.variant for archive in self._archives if archive.variant is not None}
        if used != set(declared):
            declaration, usage = (", ".join(sorted(names)) or "none" for names in (declared, used))
            self.warn(path, f"declares the variants {declaration}, uses {usage}")

    def platform(self, path: str, name: str, value: JsonObject) -> bool:
        """Read the archives of one platform.

        Returns False if the object is not a platform.
        """
        here = f"{path}.{name}" if name in KNOWN_PLATFORMS else join_path(path, name)
        is_flat = not _ARCHIVE_KEYS.isdisjoint(value)
        variants = {
            key: item
            for key, item in value.items()
            if isinstance(item, dict) and key not in _ARCHIVE_KEYS
        }
        if not is_flat and not variants and not _is_platform_like(name):
            self.keep(here, value)
            return False
        self.platform_name(here, name)
        if not is_flat and not variants:
            self.problem(here, "has no archive" if value else "is empty")
        if is_flat:
            self.shapes.add("mixed" if variants else "flat")
            self.unknown_fields(here, value, variants)
            self.archive(here, name, None, value)
        elif variants:
            self.shapes.add("nested")
            self.unknown_fields(here, value, variants)
        for variant, item in variants.items():
            self.keys += len(item)
            is_known = _is_known_variant(variant)
            of_package = self._package, self._version
            usual = _usual_archive(*of_package, name, variant, item) if is_known else None
            if usual is not None:
                self._archives.append(usual)
                continue
            below = join_path(here, variant)
            if not is_known:
                if not _is_name(variant):
                    self.problem(below, "is not a valid variant name")
                    continue
                self.warn(below, "unknown variant, kept")
            self.unknown_fields(below, item, ())
            self.archive(below, name, variant, item)
        return True

    def unknown_fields(self, path: str, value: JsonObject, variants: Collection[str]) -> None:
        for key, item in value.items():
            if key in _ARCHIVE_KEYS or key in variants:
                continue
            if _is_known_variant(key):
                self.problem(join_path(path, key), f"expected an archive, got {kind_of(item)}")
            else:
                self.keep_key(path, key, item, _ARCHIVE_KEYS - value.keys())

    def platform_name(self, path: str, name: str) -> None:
        if name in KNOWN_PLATFORMS:
            return
        if _is_name(name):
            self.warn(path, "unknown platform, kept")
        else:
            self.problem(path, "is not a valid platform name")

    def archive(self, path: str, platform: str, variant: str | None, value: JsonObject) -> None:
        """Read one archive, or record its problems."""
        package, version = self._package, self._version
        place = self.path(path, "relative_path", value.get("relative_path"))
        sha256 = self.hash(path, "sha256", value.get("sha256"), SHA256_DIGITS)
        md5 = self.hash(path, "md5", value["md5"], MD5_DIGITS) if "md5" in value else None
        size = self.size(f"{path}.size", value["size"]) if "size" in value else None
        if version is None or place is None or sha256 is None:
            return
        stem = usual_stem(package, version, platform, variant)
        self.compare_path(f"{path}.relative_path", place, stem)
        # Wheels exist for every platform.
        is_wheel = place.endswith(".whl")
        if not is_wheel and place.endswith(".zip") is not (Platform(platform).os == "windows"):
            self.warn(f"{path}.relative_path", f"is an unusual archive format for {platform}")
        fields = (package, version, platform, variant, place, sha256, md5, size)
        self._archives.append(Archive(*fields))
