-- Version 14. Another text of this file means another index. `cudaredist query --tables` and
-- docs/query-tables.md show the comments.

PRAGMA application_id = 1129661522;

-- Documents of the data folder and of the shipped data.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    layer TEXT NOT NULL, -- `local` or `shipped`
    channel TEXT NOT NULL, -- `redist` or `wheels`. Empty: symbols, an API or a table
    kind TEXT NOT NULL, -- `release`, `symbols`, `api` or `table`
    name TEXT NOT NULL, -- the redistributable, the library, the package of an API or the table
    label TEXT NOT NULL, -- the release, else empty
    state TEXT NOT NULL, -- sizes and times of the files. Empty: they changed just now
    is_readable INTEGER NOT NULL, -- 0: a file is broken, and has no rows
    error TEXT, -- the reason why it is broken
    UNIQUE (layer, channel, kind, name, label)
);
CREATE INDEX unreadable_documents ON documents (layer, channel, kind, name, label) WHERE NOT is_readable;

-- Releases of redistributables: a manifest each.
CREATE TABLE releases (
    id INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`
    channel TEXT NOT NULL, -- `redist` (NVIDIA's archives) or `wheels`
    redist TEXT NOT NULL, -- the redistributable, such as `cuda`
    label TEXT NOT NULL, -- such as `12.9.1`
    sort_key TEXT NOT NULL, -- orders the labels of a redistributable
    date TEXT, -- the day of the release in the manifest, such as `2025-10-09`. For wheels: of the first upload
    has_manifest INTEGER NOT NULL, -- 0: only the feature file is there
    has_features INTEGER NOT NULL, -- 0: no archive was examined
    manifest_url TEXT, -- of NVIDIA's manifest. Null: not on NVIDIA's server for releases
    manifest_sha256 TEXT, -- of NVIDIA's manifest. Null: of wheels, or no manifest
    UNIQUE (redist, label, channel, layer)
);

-- Releases that commands read. If both layers have one, it is the `local` one.
CREATE VIEW current_releases AS
SELECT * FROM releases AS own
WHERE has_manifest AND NOT EXISTS (
    SELECT 1 FROM releases AS upper
    WHERE (upper.redist, upper.label, upper.channel) = (own.redist, own.label, own.channel)
        AND upper.has_manifest AND upper.layer < own.layer
);

-- Packages of a manifest.
CREATE TABLE packages (
    release INTEGER NOT NULL REFERENCES releases ON DELETE CASCADE,
    package TEXT NOT NULL, -- such as `libcublas`
    title TEXT, -- as the manifest states it
    license TEXT -- as the manifest states it
);
CREATE INDEX packages_of_release ON packages (release);
CREATE INDEX packages_with_name ON packages (package);

-- Archives of a manifest, and archives of feature files.
CREATE TABLE archives (
    id INTEGER PRIMARY KEY,
    release INTEGER NOT NULL REFERENCES releases ON DELETE CASCADE,
    package TEXT NOT NULL, -- such as `libcublas`
    version TEXT, -- of the package. Null: only in the feature file
    platform TEXT NOT NULL, -- such as `linux-x86_64`
    variant TEXT, -- such as `cuda12`
    relative_path TEXT, -- to the manifest. Null: only in the feature file
    sha256 TEXT, -- as the manifest states it
    md5 TEXT, -- as the manifest states it
    size INTEGER, -- bytes
    contents INTEGER REFERENCES contents, -- null: not examined
    file_name TEXT, -- of the archive
    url TEXT, -- on NVIDIA's servers. Null: a wheel, or a product of your own
    sri TEXT, -- the SHA-256 as Nix and browsers write it
    nix_base32 TEXT, -- the SHA-256 in the base 32 of Nix
    project TEXT, -- of a wheel in the package index. Null: not a wheel
    wheel_version TEXT -- of the project. Null: not a wheel
);
CREATE INDEX archives_of_release ON archives (release, package);
CREATE INDEX archives_of_package ON archives (package, version, platform);
CREATE INDEX archives_with_contents ON archives (contents);

-- Archives of the releases that commands read, with their releases. This is the table for recipes and
-- build files: the version and hash of a package by platform and variant.
CREATE VIEW downloads AS
SELECT
    own.channel, own.redist, own.label, own.sort_key, own.date, package, version, platform, variant,
    file_name, relative_path, url, sha256, sri, nix_base32, md5, size, project, wheel_version, contents
FROM current_releases AS own JOIN archives ON archives.release = own.id
WHERE relative_path IS NOT NULL;

-- Contents of examined archives. Archives with equal contents share a row.
CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE, -- hash of the row
    facts TEXT NOT NULL, -- the entry of the feature file without `code_by_file`, as JSON
    headers TEXT NOT NULL, -- missing headers, as JSON
    code TEXT, -- `code_by_file` of the entry, as JSON. Null: none or unknown
    has_code INTEGER NOT NULL, -- 0: no device code
    has_files INTEGER NOT NULL, -- 0: the files are unknown
    unlisted INTEGER NOT NULL, -- number of files without a name
    license_sha256 TEXT -- of its license text. Null: none, or unknown
);

-- Archives of NVIDIA that were not examined, with the contents of the wheel of the same package,
-- version, platform and variant: a row for each release of the wheel. The libraries are the same,
-- with their symbols and device code. A wheel has no static libraries and no samples.
CREATE VIEW wheel_contents AS
SELECT
    own.id AS archive, -- row of `archives`: the archive
    wheel.id AS wheel, -- row of `archives`: the wheel of the same version
    wheel.contents
FROM archives AS wheel CROSS JOIN archives AS own
    ON (own.package, own.version, own.platform) = (wheel.package, wheel.version, wheel.platform)
    AND own.variant IS wheel.variant AND own.contents IS NULL
JOIN releases AS release_of_wheel ON release_of_wheel.id = wheel.release
JOIN releases AS release_of_own ON release_of_own.id = own.release
WHERE wheel.contents IS NOT NULL AND release_of_own.redist = release_of_wheel.redist
    AND release_of_own.channel = 'redist' AND release_of_wheel.channel = 'wheels';

-- Outputs of archives, as the feature file states them.
CREATE TABLE outputs (
    contents INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
    output TEXT NOT NULL, -- such as `lib`
    files INTEGER NOT NULL, -- number of files
    bytes INTEGER NOT NULL -- unpacked
);
CREATE INDEX outputs_of_contents ON outputs (contents);

-- Libraries, and programs that require libraries.
CREATE TABLE binaries (
    id INTEGER PRIMARY KEY,
    contents INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
    path TEXT NOT NULL, -- in the archive
    output TEXT NOT NULL, -- such as `lib`
    kind TEXT NOT NULL, -- `library`, `stub` or `program`
    soname TEXT, -- of a DLL its own name. Null: none
    library TEXT, -- the library's name in tables of symbols. Null: a program
    glibc TEXT, -- the newest required version
    libstdcxx TEXT, -- the newest required version
    runpath TEXT NOT NULL, -- DT_RUNPATH, or else DT_RPATH, with `:` between folders. Empty: none
    needs TEXT NOT NULL -- the rows of the view `needs`, as JSON: pairs of `name` and `way`
);
CREATE INDEX binaries_of_contents ON binaries (contents);
CREATE INDEX binaries_with_soname ON binaries (soname);

-- Links to libraries in the archive.
CREATE TABLE links (
    binary INTEGER NOT NULL REFERENCES binaries ON DELETE CASCADE,
    path TEXT NOT NULL -- in the archive
);
CREATE INDEX links_of_binary ON links (binary);

-- Libraries that a binary requires, or may open at run time.
CREATE VIEW needs AS
SELECT
    binaries.id AS binary, -- row of `binaries`
    json_extract(value, '$[0]') AS name, -- the soname or file of the library
    json_extract(value, '$[1]') AS way -- `needed` or `opens`
FROM binaries, json_each(needs);

-- Device code of files by architecture, such as `sm_90` or `compute_90`.
CREATE VIEW device_code AS
SELECT
    contents.id AS contents, -- row of `contents`
    file.key AS path, -- in the archive
    json_extract(file.value, '$.output') AS output, -- such as `lib`
    code.key AS architecture, -- such as `sm_90`
    code.value AS bytes, -- in the file
    coalesce(json_extract(file.value, '$.unpacked.' || code.key), 0) AS unpacked -- decompressed
FROM contents, json_each(code) AS file, json_each(file.value, '$.bytes') AS code;

-- Folders of files. Archives with equal folders share a row.
CREATE TABLE folders (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE, -- hash of the path and the names
    path TEXT NOT NULL -- in the archive
);

-- Names of the files in folders.
CREATE TABLE folder_files (
    folder INTEGER NOT NULL REFERENCES folders ON DELETE CASCADE,
    name TEXT NOT NULL -- without folders
);
CREATE INDEX files_of_folder ON folder_files (folder);
CREATE INDEX files_with_name ON folder_files (name);

-- Folders of archives. The view `files` is simpler.
CREATE TABLE contents_folders (
    contents INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
    output TEXT NOT NULL, -- such as `lib`
    folder INTEGER NOT NULL REFERENCES folders
);
CREATE INDEX folders_of_contents ON contents_folders (contents);
CREATE INDEX contents_with_folder ON contents_folders (folder);

-- Files of archives.
CREATE VIEW files AS
SELECT contents, output, CASE path WHEN '' THEN name ELSE path || '/' || name END AS path, name
FROM contents_folders JOIN folders ON folders.id = folder JOIN folder_files USING (folder);

-- Files of archives with the names that license texts have for them: `libcudart.so` for
-- `libcudart.so.12`, and `cudart.dll` for `cudart64_12.dll`.
CREATE VIEW plain_names AS
SELECT
    contents, output, path, name,
    plain_name AS plain, -- without version and architecture
    of_system AS system -- `Windows` for DLLs and their import libraries, else `Linux`
FROM (
    SELECT *,
        CASE lower(substr(name, -4)) WHEN '.dll' THEN 'Windows' WHEN '.lib' THEN 'Windows'
            ELSE 'Linux' END AS of_system,
        CASE
            WHEN rtrim(name, '0123456789.') GLOB '*.so' THEN rtrim(name, '0123456789.')
            WHEN substr(name, length(stem) + 1) GLOB '*_*.[Dd][Ll][Ll]'
                OR lower(substr(name, length(stem) + 1)) IN ('32.dll', '64.dll')
                THEN stem || substr(name, -4)
            ELSE name END AS plain_name
    FROM (
        SELECT *, rtrim(substr(name, 1, length(name) - 4), '0123456789_') AS stem FROM files
    )
);

-- License texts of archives, as policy knows them.
CREATE TABLE license_texts (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` replaces all of `shipped`
    file_sha256 TEXT NOT NULL, -- of a file with the text
    title TEXT NOT NULL, -- such as `CUDA EULA`, with its date if it has one
    has_list INTEGER -- 1: it lists the files that may be distributed. Null: unknown
);
CREATE INDEX license_texts_of_document ON license_texts (document);

-- Names of files that a license text lists as distributable.
CREATE TABLE distributable_names (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` replaces all of `shipped`
    title TEXT NOT NULL, -- of the license text
    component TEXT, -- as the text names it. Null: the list has no components
    system TEXT NOT NULL, -- `All`, `Linux`, `Windows`, `Mac OSX` or `Android`
    pattern TEXT NOT NULL, -- a name or the end of a path, without version and architecture, or a suffix such as `.so`
    file_name TEXT NOT NULL, -- the last part of the pattern in lower case
    is_conditional INTEGER NOT NULL -- 1: only in applications that meet further criteria
);
CREATE INDEX distributable_names_of_document ON distributable_names (document);
CREATE INDEX distributable_names_of_text ON distributable_names (title, file_name);

-- Files of archives, and whether the license text in the archive lists them as distributable. The
-- view `plain_names` removes the version and the architecture of their names.
CREATE VIEW distributions AS
SELECT
    contents, output, path, name,
    title AS license_text, -- its title. Null: no text, or an unknown one
    status AS distribution -- `listed`, `conditional` (in some applications only), `not-listed`, `no-list` (the text has none) or `unknown`
FROM (
    SELECT *, CASE WHEN has_list IS NULL THEN 'unknown' WHEN NOT has_list THEN 'no-list' ELSE (
        SELECT CASE min(is_conditional)
            WHEN 0 THEN 'listed' WHEN 1 THEN 'conditional' ELSE 'not-listed' END
        FROM (
            SELECT is_conditional FROM distributable_names AS own
            WHERE own.title = texts.title AND own.layer = texts.layer
                AND own.system IN ('All', file.system)
                AND own.file_name IN (lower(file.name), lower(plain))
                AND (pattern NOT GLOB '*/*'
                    OR substr('/' || path, -length(pattern) - 1) = '/' || pattern)
            UNION ALL
            SELECT is_conditional FROM distributable_names AS own
            WHERE own.title = texts.title AND own.layer = texts.layer
                AND own.system IN ('All', file.system)
                AND own.file_name >= '.' AND own.file_name < '/' -- a suffix
                AND substr(plain, -length(pattern)) = pattern
        )
    ) END AS status
    FROM plain_names AS file JOIN contents ON contents.id = contents
    LEFT JOIN license_texts AS texts ON file_sha256 = license_sha256 AND texts.layer = (
        SELECT min(layer) FROM documents WHERE documents.name = 'policy/licenses'
    )
);

-- Packages with a library, from the table of its symbols.
CREATE TABLE symbol_providers (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`
    library TEXT NOT NULL, -- the library with the symbols
    channel TEXT NOT NULL, -- `redist` or `wheels`
    redist TEXT NOT NULL, -- the redistributable, such as `cuda`
    package TEXT NOT NULL, -- such as `libcublas`
    platform TEXT NOT NULL, -- such as `linux-x86_64`
    variant TEXT, -- such as `cuda12`
    is_stub INTEGER NOT NULL -- 1: the library is only for linking
);
CREATE INDEX providers_of_document ON symbol_providers (document);

-- Archives of a provider's releases.
CREATE TABLE symbol_archives (
    provider INTEGER NOT NULL REFERENCES symbol_providers ON DELETE CASCADE,
    label TEXT NOT NULL, -- such as `12.9.1`
    archive TEXT NOT NULL, -- the first 16 digits of its SHA-256
    is_read INTEGER NOT NULL -- 0: the symbols could not be read
);
CREATE INDEX archives_of_provider ON symbol_archives (provider);
CREATE INDEX providers_of_archive ON symbol_archives (archive);

-- Groups of symbols that the same releases of a library have.
CREATE TABLE symbol_groups (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    library TEXT NOT NULL, -- the library with the symbols
    version TEXT NOT NULL, -- of the symbols, empty if there is none
    imported_from TEXT, -- null: the library exports the symbols
    releases TEXT NOT NULL -- one text for each provider, as JSON
);
CREATE INDEX groups_of_document ON symbol_groups (document);

-- Releases of a provider that have the symbols of a group.
CREATE TABLE symbol_releases (
    symbol_group INTEGER NOT NULL REFERENCES symbol_groups ON DELETE CASCADE,
    provider INTEGER NOT NULL REFERENCES symbol_providers ON DELETE CASCADE,
    label TEXT NOT NULL -- such as `12.9.1`
);
CREATE INDEX releases_of_group ON symbol_releases (symbol_group);
CREATE INDEX releases_of_provider ON symbol_releases (provider, label);

-- Names of symbols. Those of C++ have no index: it would be larger than all other rows.
CREATE TABLE symbols (
    symbol_group INTEGER NOT NULL REFERENCES symbol_groups ON DELETE CASCADE,
    name TEXT NOT NULL -- mangled, for C++
);
CREATE INDEX symbols_of_group ON symbols (symbol_group);
CREATE INDEX symbols_with_name ON symbols (name) WHERE name NOT GLOB '_Z*';

-- Exports of libraries, a row for each symbol, provider and release.
CREATE VIEW exports AS
SELECT name, version, layer, symbol_providers.library, channel, redist, package, platform, variant,
    is_stub, label
FROM symbol_providers JOIN symbol_releases ON provider = symbol_providers.id
JOIN symbol_groups ON symbol_groups.id = symbol_group AND imported_from IS NULL
JOIN symbols USING (symbol_group);

-- Groups of symbols that the library of an archive exports. `local` takes precedence.
CREATE VIEW archive_exports AS
SELECT own.library, archive, channel, redist, package, is_stub, label,
    CASE WHEN imported_from IS NULL THEN symbol_group END AS symbol_group
FROM symbol_archives AS one JOIN symbol_providers AS own ON own.id = one.provider
LEFT JOIN symbol_releases USING (provider, label)
LEFT JOIN symbol_groups ON symbol_groups.id = symbol_group
WHERE is_read AND NOT EXISTS (
    SELECT 1 FROM symbol_archives AS more JOIN symbol_providers AS upper ON upper.id = more.provider
    WHERE (upper.library, more.archive) = (own.library, one.archive) AND upper.layer < own.layer
);

-- Archives whose headers a table of APIs has, by platform.
CREATE TABLE api_providers (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence, for all rows of a package
    package TEXT NOT NULL, -- such as `cuda_cudart`
    channel TEXT NOT NULL, -- `redist` or `wheels`
    redist TEXT NOT NULL, -- the redistributable, such as `cuda`
    platform TEXT NOT NULL, -- such as `linux-x86_64`
    variant TEXT -- such as `cuda12`
);
CREATE INDEX api_providers_of_document ON api_providers (document);

-- Releases of a provider, in ascending order. A name without a form in one of them is not in its headers.
CREATE TABLE api_archives (
    provider INTEGER NOT NULL REFERENCES api_providers ON DELETE CASCADE,
    label TEXT NOT NULL, -- such as `12.9.1`
    archive TEXT NOT NULL -- the first 16 digits of its SHA-256
);
CREATE INDEX api_archives_of_provider ON api_archives (provider);

-- Sets of releases that have the same headers or forms.
CREATE TABLE api_sets (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    releases TEXT NOT NULL -- one text for each provider, as JSON, such as `["12.0.1..12.4.1"]`
);
CREATE INDEX api_sets_of_document ON api_sets (document);

-- Releases of a set.
CREATE TABLE api_releases (
    api_set INTEGER NOT NULL REFERENCES api_sets ON DELETE CASCADE,
    provider INTEGER NOT NULL REFERENCES api_providers ON DELETE CASCADE,
    label TEXT NOT NULL -- such as `12.9.1`
);
CREATE INDEX api_releases_of_set ON api_releases (api_set);
CREATE INDEX api_releases_of_provider ON api_releases (provider, label);

-- Headers of packages, and forms of the names in them. A name that changed has a row for each form.
CREATE TABLE api_forms (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence, for all rows of a package
    package TEXT NOT NULL, -- such as `cuda_cudart`
    header TEXT NOT NULL, -- as in `#include`, such as `cuda_runtime_api.h`
    kind TEXT NOT NULL, -- `function`, `struct`, `union`, `enum`, `field`, `enumerator`, `typedef`, `variable`, `macro`, `header`, `name` (in C++) or `unread` (a header that does not parse)
    name TEXT NOT NULL, -- such as `cudaMalloc`. Of a field in an unnamed struct its path, such as `handle.fd`. Of a header its path
    parent TEXT NOT NULL, -- the struct, union or enum of a field or enumerator. Empty: none
    signature TEXT NOT NULL, -- the declaration as in C. Of an `unread` header, the reason
    symbol TEXT NOT NULL, -- the function in the library. Differs from `name` if that is a macro, such as `cuMemAlloc` for `cuMemAlloc_v2`. Empty: not a function
    deprecated TEXT, -- the note of the deprecation, which can be empty. Null: not deprecated
    api_set INTEGER NOT NULL REFERENCES api_sets -- the releases with this form
);
CREATE INDEX api_forms_of_document ON api_forms (document);
CREATE INDEX api_forms_with_name ON api_forms (name);
CREATE INDEX api_forms_with_symbol ON api_forms (symbol) WHERE symbol != '' AND symbol != name;
CREATE INDEX api_forms_unread ON api_forms (document) WHERE kind = 'unread';
CREATE INDEX api_forms_of_set ON api_forms (api_set);

-- Compute capabilities of GPUs.
CREATE TABLE gpus (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence
    capability TEXT NOT NULL, -- such as `9.0` or `9.0a`
    architecture TEXT NOT NULL, -- the same in device code, such as `sm_90a`
    name TEXT NOT NULL, -- the same in `CMAKE_CUDA_ARCHITECTURES`, such as `90a`
    number INTEGER NOT NULL, -- the same without the letter, as LLVM numbers it, such as `900`. Orders GPUs
    family TEXT NOT NULL, -- such as `Hopper`
    first_cuda TEXT NOT NULL, -- the first CUDA minor with it
    last_cuda TEXT, -- the last CUDA minor with it. Null: no known end
    is_jetson INTEGER NOT NULL, -- 1: a GPU of Jetsons
    products TEXT NOT NULL, -- names of GPUs, as JSON
    renamed_to TEXT -- the capability's name in later CUDA releases. Null: it has no other name
);
CREATE INDEX gpus_of_document ON gpus (document);

-- Answers of `explain gpu`, which are stored when it is asked. Every change of the data removes them.
CREATE TABLE gpu_answers (
    channel TEXT NOT NULL, -- of the releases: `redist` or `wheels`
    is_layered INTEGER NOT NULL, -- 1: of a data folder over the shipped data
    capability TEXT NOT NULL, -- such as `9.0a`
    answer TEXT NOT NULL, -- as JSON
    PRIMARY KEY (channel, is_layered, capability)
);

-- Host compilers that nvcc accepts.
CREATE TABLE compilers (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence
    label TEXT NOT NULL, -- the CUDA release
    compiler TEXT NOT NULL, -- such as `gcc`
    status TEXT NOT NULL, -- `range`, `refused` or `unchecked`
    min INTEGER, -- the oldest accepted version. Null: no limit
    max INTEGER, -- the newest accepted version. Null: no limit
    unit TEXT -- of the versions: `major`, `version` or `_MSC_VER`. Null: no range
);
CREATE INDEX compilers_of_document ON compilers (document);

-- The newest glibc that nvcc compiles with. A release without a row is unknown.
CREATE TABLE glibc_bounds (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence
    label TEXT NOT NULL, -- the CUDA release
    newest TEXT NOT NULL, -- such as `2.41`
    at_least INTEGER NOT NULL, -- 1: no known glibc clashes, so later ones may work too
    clashes TEXT NOT NULL -- functions that the next glibc declares otherwise, as JSON
);
CREATE INDEX glibc_bounds_of_document ON glibc_bounds (document);

-- Known vulnerabilities of archives, by NVIDIA's security bulletins. An archive without a row has the fixed
-- version or not the component, or no bulletin is about it.
CREATE TABLE vulnerabilities (
    archive INTEGER NOT NULL REFERENCES archives ON DELETE CASCADE,
    cve TEXT NOT NULL, -- such as `CVE-2025-23339`
    state TEXT NOT NULL, -- `affected`, or `unknown`: the bulletin states neither
    reason TEXT NOT NULL, -- of the state
    fixed TEXT, -- the first fixed release. Null: not stated
    components TEXT NOT NULL, -- parts of the toolkit that the bulletin names, as JSON
    score REAL, -- CVSS base score
    vector TEXT, -- CVSS vector
    bulletin TEXT NOT NULL, -- number of the bulletin
    url TEXT NOT NULL -- NVIDIA's page about the bulletin
);
CREATE INDEX vulnerabilities_of_archive ON vulnerabilities (archive);

-- Entries of policies of package sets, as far as commands look them up.
CREATE TABLE policies (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` replaces all of `shipped`
    part TEXT NOT NULL, -- of the file, such as `external`, or `named` for each package that it names
    name TEXT NOT NULL, -- of the entry, such as the package. Empty: the part is a list
    entry TEXT NOT NULL -- as JSON. `null`: the part is `named`
);
CREATE INDEX policies_of_document ON policies (document);

-- The lowest drivers for CUDA releases, as NVIDIA states them.
CREATE TABLE drivers (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence
    label TEXT NOT NULL, -- the CUDA release
    system TEXT NOT NULL, -- `linux` or `windows`
    driver TEXT, -- with all features. Null: not stated
    lowest TEXT, -- with minor version compatibility. Null: not stated
    reference TEXT NOT NULL -- the document that states the driver
);
CREATE INDEX drivers_of_document ON drivers (document);

-- The newest version of PTX that a CUDA minor writes, and its driver compiles.
CREATE TABLE ptx_versions (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence
    cuda TEXT NOT NULL, -- the CUDA minor, such as `12.9`
    ptx TEXT NOT NULL, -- such as `8.8`
    reference TEXT NOT NULL -- the document that states it
);
CREATE INDEX ptx_versions_of_document ON ptx_versions (document);

-- Releases of JetPack, the software of Jetsons: a row for each release of Jetson Linux (L4T).
CREATE TABLE jetpacks (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence
    jetpack TEXT NOT NULL, -- such as `6.2`
    l4t TEXT NOT NULL, -- such as `36.4.3`
    l4t_major INTEGER NOT NULL, -- its generation, such as `36`
    cuda TEXT NOT NULL, -- the CUDA minor in it, such as `12.6`
    cudnn TEXT, -- the release of cuDNN in it. Null: unknown
    tensorrt TEXT, -- the release of TensorRT in it. Null: unknown
    capabilities TEXT NOT NULL, -- of its GPUs, as JSON
    platform TEXT, -- of NVIDIA's archives for it. Null: NVIDIA publishes none
    reference TEXT NOT NULL -- the source
);
CREATE INDEX jetpacks_of_document ON jetpacks (document);

-- Compat packages that run on a generation of L4T. Others are unknown.
CREATE TABLE jetson_compat (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence
    l4t_major INTEGER NOT NULL, -- the generation, such as `36`
    package TEXT NOT NULL, -- such as `cuda_compat`
    version TEXT, -- of the package. Null: the source does not state it
    cuda TEXT NOT NULL, -- the newest CUDA minor with the package
    reference TEXT NOT NULL -- the source
);
CREATE INDEX jetson_compat_of_document ON jetson_compat (document);

-- Runfile installers of CUDA, from the records of `cudaredist runfile add`.
CREATE TABLE runfiles (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    layer TEXT NOT NULL, -- `local` or `shipped`. `local` takes precedence
    label TEXT NOT NULL, -- the CUDA release
    platform TEXT NOT NULL, -- such as `linux-x86_64`
    file_name TEXT NOT NULL, -- of the installer
    url TEXT, -- null: unknown
    size INTEGER NOT NULL, -- bytes
    sha256 TEXT NOT NULL, -- of the installer
    sri TEXT NOT NULL, -- the SHA-256 as Nix and browsers write it
    md5 TEXT NOT NULL, -- of the installer
    driver TEXT -- the driver inside. Null: not in the file's name
);
CREATE INDEX runfiles_of_document ON runfiles (document);
