-- Version 1. Another text of this file means another index.

-- Documents of the data folder and of the shipped data.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    layer TEXT NOT NULL, -- `local` or `shipped`
    kind TEXT NOT NULL, -- `release` or `symbols`
    name TEXT NOT NULL, -- the redistributable, or the library
    label TEXT NOT NULL, -- the release, empty for symbols
    state TEXT NOT NULL, -- sizes and times of the files. Empty: they changed just now
    is_readable INTEGER NOT NULL,
    UNIQUE (layer, kind, name, label)
);

-- Releases of redistributables: a manifest each.
CREATE TABLE releases (
    id INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`
    redist TEXT NOT NULL,
    label TEXT NOT NULL,
    sort_key TEXT NOT NULL, -- orders the labels of a redistributable
    date TEXT, -- as the manifest states it
    has_manifest INTEGER NOT NULL,
    has_features INTEGER NOT NULL
);

-- Packages of a manifest.
CREATE TABLE packages (
    release INTEGER NOT NULL REFERENCES releases ON DELETE CASCADE,
    package TEXT NOT NULL,
    title TEXT,
    license TEXT
);
CREATE INDEX packages_of_release ON packages (release);

-- Archives of a manifest, and archives of feature files.
CREATE TABLE archives (
    id INTEGER PRIMARY KEY,
    release INTEGER NOT NULL REFERENCES releases ON DELETE CASCADE,
    package TEXT NOT NULL,
    version TEXT, -- null: only in the feature file
    platform TEXT NOT NULL,
    variant TEXT, -- such as `cuda12`
    relative_path TEXT, -- to the manifest. Null: only in the feature file
    sha256 TEXT,
    md5 TEXT,
    size INTEGER, -- bytes
    contents INTEGER REFERENCES contents -- null: not examined
);
CREATE INDEX archives_of_release ON archives (release);
CREATE INDEX archives_of_package ON archives (package);
CREATE INDEX archives_with_contents ON archives (contents);

-- Contents of examined archives. Archives with equal contents share a row.
CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    facts TEXT NOT NULL, -- the entry of the feature file, as JSON
    headers TEXT NOT NULL, -- missing headers, as JSON
    code TEXT, -- device code by file, as JSON. Null: none or unknown
    has_code INTEGER NOT NULL,
    has_files INTEGER NOT NULL, -- whether the files are known
    unlisted INTEGER NOT NULL -- number of files without a name
);

-- Outputs of archives, as the feature file states them.
CREATE TABLE outputs (
    contents INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
    output TEXT NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL -- unpacked
);
CREATE INDEX outputs_of_contents ON outputs (contents);

-- Libraries, and programs that require libraries.
CREATE TABLE binaries (
    id INTEGER PRIMARY KEY,
    contents INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
    path TEXT NOT NULL,
    output TEXT NOT NULL,
    kind TEXT NOT NULL, -- `library`, `stub` or `program`
    soname TEXT,
    glibc TEXT, -- the newest required version
    libstdcxx TEXT -- the newest required version
);
CREATE INDEX binaries_of_contents ON binaries (contents);
CREATE INDEX binaries_with_soname ON binaries (soname);

-- Links to libraries in the archive.
CREATE TABLE links (
    binary INTEGER NOT NULL REFERENCES binaries ON DELETE CASCADE,
    path TEXT NOT NULL
);
CREATE INDEX links_of_binary ON links (binary);

-- Libraries that a binary requires, or may open at run time.
CREATE TABLE needs (
    binary INTEGER NOT NULL REFERENCES binaries ON DELETE CASCADE,
    name TEXT NOT NULL,
    way TEXT NOT NULL -- `needed` or `opens`
);
CREATE INDEX needs_of_binary ON needs (binary);

-- Device code of files by architecture, such as `sm_90` or `compute_90`.
CREATE TABLE device_code (
    contents INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
    path TEXT NOT NULL,
    output TEXT NOT NULL,
    architecture TEXT NOT NULL,
    bytes INTEGER NOT NULL, -- in the file
    unpacked INTEGER NOT NULL -- decompressed
);
CREATE INDEX device_code_of_contents ON device_code (contents);

-- Folders of files. Archives with equal folders share a row.
CREATE TABLE folders (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    path TEXT NOT NULL
);
CREATE TABLE folder_files (
    folder INTEGER NOT NULL REFERENCES folders ON DELETE CASCADE,
    name TEXT NOT NULL
);
CREATE INDEX files_of_folder ON folder_files (folder);
CREATE INDEX files_with_name ON folder_files (name);
CREATE TABLE contents_folders (
    contents INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
    output TEXT NOT NULL,
    folder INTEGER NOT NULL REFERENCES folders
);
CREATE INDEX folders_of_contents ON contents_folders (contents);
CREATE INDEX contents_with_folder ON contents_folders (folder);

-- Files of archives.
CREATE VIEW files AS
SELECT contents, output, CASE path WHEN '' THEN name ELSE path || '/' || name END AS path, name
FROM contents_folders JOIN folders ON folders.id = folder JOIN folder_files USING (folder);

-- Symbols of libraries. No index has their names: it would be larger than all other rows, and to
-- read all names takes 20 ms. `releases`: one text for each provider, as JSON.
CREATE TABLE symbol_groups (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    library TEXT NOT NULL, -- the library with the symbols
    version TEXT NOT NULL, -- of the symbols
    imported_from TEXT, -- null: the library exports the symbols
    releases TEXT NOT NULL
);
CREATE INDEX groups_of_document ON symbol_groups (document);
CREATE TABLE symbols (
    symbol_group INTEGER NOT NULL REFERENCES symbol_groups ON DELETE CASCADE,
    name TEXT NOT NULL
);
CREATE INDEX symbols_of_group ON symbols (symbol_group);
