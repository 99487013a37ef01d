"""Tests of the files in a data folder."""

from pathlib import Path

from cudaredist.primitives import parse_label
from cudaredist.store.data_folder import Store


def test_own_feature_file_is_preferred_to_that_of_another_tool(tmp_path: Path) -> None:
    folder, label = Store(tmp_path).features("cuda"), parse_label("12.9.1")
    folder.write(label, b"ours")
    (folder.path / "redistrib_features_12.9.1.json").write_bytes(b"theirs")
    assert folder.labels() == (label,)
    assert folder.read(label) == b"ours"
    (folder.path / "feature_12.9.1.json").unlink()
    assert folder.read(label) == b"theirs"
