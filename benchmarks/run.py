"""Run benchmarks to the end, and print a table of their verdicts.

Usage: run.py [SCRIPT ...]. The default is all. Exits 1 if a limit is exceeded or a script fails.
"""

import subprocess
import sys
from pathlib import Path

from verdict import VERDICT

SCRIPTS = (
    *(
        "startup",
        "answer_questions",
        "read_manifests",
        "fetch_manifests",
        "fetch_archives",
        "check_wheels",
        "process_archives",
    ),
    *("audit_wheel", "materialize", "second_run", "mirror", "write_shipped_site"),
)


def verdicts_of(script: str) -> list[list[str]]:
    """Run a script, show its output, and return the rows of the table."""
    command = [sys.executable, "-u", str(Path(__file__).with_name(f"{script}.py"))]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(VERDICT):
                rows.append(line.removeprefix(VERDICT).strip().split(" | "))
            else:
                print(line, end="", flush=True)
    return rows if process.returncode == 0 else [*rows, [script, "-", "-", "failed"]]


def main() -> None:
    """Run the scripts of the command line, or all."""
    rows = [row for script in sys.argv[1:] or SCRIPTS for row in verdicts_of(script)]
    print()
    for name, measured, limit, result in [["benchmark", "measured", "limit", "verdict"], *rows]:
        print(f"{name:50} {measured:>9} {limit:>7}  {result}")
    sys.exit(any(row[-1] != "ok" for row in rows))


if __name__ == "__main__":
    main()
