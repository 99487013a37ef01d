"""Headers that an archive includes but does not contain.

An include is internal if the archive has a header with that path below any folder, because include
paths are unknown here. Headers of the language and of POSIX are ignored. The provider of a missing
header can only be determined within a whole release.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush

from cudaredist.features.facts import Entry, IncludeLines
from cudaredist.features.includes import CONDITION_LIMIT, is_header, join_conditions

_WAYS = 4
"""Limit for the headers listed for each missing one, each with another condition."""
_has_private_folder = re.compile(r"/(?:__[^/]*|[a-z0-9]*[dD]etails?|impl|internal)/").search
"""Matches folders with headers that only the package itself may include."""
_NEVER = " " * (CONDITION_LIMIT * 2)
"""A condition longer than any real one."""
_LIMIT = 1 << 20
"""Limit for the characters about an archive's missing headers. cuda_cccl has 5,000."""


# C: ISO/IEC 9899:2024, 7.1.2. C++: ISO/IEC 14882:2024 and the draft of C++26 (N5008), [headers].
# POSIX: IEEE Std 1003.1-2024 and -2017, Headers. No package of NVIDIA provides one at that path.
_C = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
    stdalign stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn
    string tgmath threads time uchar wchar wctype
"""
_CXX = """
    algorithm any array atomic barrier bit bitset cassert ccomplex cctype cerrno cfenv cfloat
    charconv chrono cinttypes ciso646 climits clocale cmath codecvt compare complex concepts
    condition_variable contracts coroutine csetjmp csignal cstdalign cstdarg cstdbool cstddef
    cstdint cstdio cstdlib cstring ctgmath ctime cuchar cwchar cwctype debugging deque exception
    execution expected filesystem flat_map flat_set format forward_list fstream functional
    future generator hazard_pointer hive initializer_list inplace_vector iomanip ios iosfwd
    iostream istream iterator latch limits linalg list locale map mdspan memory memory_resource
    meta mutex new numbers numeric optional ostream print queue random ranges ratio rcu regex
    scoped_allocator semaphore set shared_mutex simd source_location span spanstream sstream
    stack stacktrace stdexcept stdfloat stop_token streambuf string string_view strstream
    syncstream system_error text_encoding thread tuple type_traits typeindex typeinfo
    unordered_map unordered_set utility valarray variant vector version
"""
_POSIX = """
    aio arpa/inet cpio devctl dirent dlfcn endian fcntl fmtmsg fnmatch ftw glob grp iconv
    langinfo libgen libintl monetary mqueue ndbm net/if netdb netinet/in netinet/tcp nl_types
    poll pthread pwd regex sched search semaphore spawn strings stropts sys/ipc sys/mman sys/msg
    sys/resource sys/select sys/sem sys/shm sys/socket sys/stat sys/statvfs sys/time sys/times
    sys/types sys/uio sys/un sys/utsname sys/wait syslog tar termios trace ulimit unistd utime
    utmpx wordexp
"""
_STANDARD = frozenset({*_CXX.split(), *(f"{name}.h" for name in (_C + _POSIX).split())})
"""The names as written in an `#include`."""


def missing_headers(
    files: Mapping[str, Entry], links: Iterable[str]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return an archive's missing headers, with an including header for each condition.

    Each including header has its condition, which is empty if there is none. If the condition of
    one is empty, only that one is listed, otherwise those with the shortest conditions. For a
    private header, the condition also covers its inclusion by the archive's other headers. The
    second result is a list of notes.
    """
    headers = {
        path: entry.header for path, entry in sorted(files.items()) if entry.header is not None
    }
    names = {name for path, lines in headers.items() for name, _ in _names(path, lines)}
    own = _own_headers(names, (*files, *links))
    reached = _reached(headers, own)
    includers: dict[str, dict[str, str]] = defaultdict(dict)
    for path, lines in headers.items():
        for name, condition in _names(path, lines):
            if name not in own:
                ways = includers[name]
                whole = join_conditions(reached[path], condition)
                ways[path] = min(ways.get(path, whole), whole, key=_rank)
    notes = [
        f"{path}: includes not read: {lines.unread}"
        for path, lines in headers.items()
        if lines.unread
    ]
    missing: dict[str, dict[str, str]] = {}
    room = _LIMIT
    for name in sorted(includers):
        ways = _shortest(includers[name])
        room -= len(name) + sum(len(path) + len(condition) for path, condition in ways.items())
        if room < 0:
            note = f"{len(includers):,} headers missing, of which {len(missing):,} are listed"
            notes.append(note)
            break
        missing[name] = ways
    return missing, notes


def _names(path: str, lines: IncludeLines) -> Iterator[tuple[str, str]]:
    """Yield a header's includes, `../x.h` relative to the folder of headers."""
    folders = path.split("/")[:-1]
    folder = "/".join(folders[folders.index("include") + 1 :])
    for include in lines.includes:
        name = include.name
        if name.startswith("."):
            name = posixpath.normpath(posixpath.join(folder, name))
        if name not in _STANDARD and not name.startswith(("/", "..")):
            yield name, include.condition


def _own_headers(names: AbstractSet[str], paths: Iterable[str]) -> dict[str, str]:
    """Return the archive's header for each name, the topmost if several."""
    own: dict[str, str] = {}
    for path in filter(is_header, paths):
        for name in names & set(_ends(path)):
            own[name] = min(own.get(name, path), path, key=_rank)
    return own


def _ends(path: str) -> Iterator[str]:
    """Yield a path without its first folder, first two, etc."""
    while "/" in path:
        path = path.partition("/")[2]
        yield path


def _reached(headers: Mapping[str, IncludeLines], own: Mapping[str, str]) -> dict[str, str]:
    """Return the condition for including each header, empty for public ones.

    This is Dijkstra's algorithm, with the rank of a condition as the distance from public headers.
    """
    reached = {path: "" for path in headers if not _has_private_folder(path)}
    waiting = [(*_rank(""), path) for path in reached]
    while waiting:
        _, condition, path = heappop(waiting)
        if condition != reached[path]:
            continue
        for name, further in _names(path, headers[path]):
            sibling = posixpath.join(path.rpartition("/")[0], name)
            target = sibling if sibling in headers else own.get(name, "")
            whole = join_conditions(condition, further)
            if target in headers and _rank(whole) < _rank(reached.get(target, _NEVER)):
                reached[target] = whole
                heappush(waiting, (*_rank(whole), target))
    return {path: reached.get(path, "") for path in headers}


def _rank(condition: str) -> tuple[int, str]:
    return len(condition), condition


def _shortest(ways: Mapping[str, str]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for path, condition in sorted(ways.items(), key=lambda way: (*_rank(way[1]), way[0])):
        if condition not in kept.values():
            kept[path] = condition
        if not condition or len(kept) == _WAYS:
            break
    return kept
