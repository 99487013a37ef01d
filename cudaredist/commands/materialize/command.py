"""materialize: create a toolkit root from a package set."""

from pathlib import Path

from cudaredist.cli.session import Session, command
from cudaredist.commands.materialize.options import REFUSED, MaterializeOptions
from cudaredist.hints import quoted


@command(MaterializeOptions, REFUSED)
def materialize(options: MaterializeOptions, session: Session) -> int:
    """Create a CUDA toolkit from a package set.

    Examples:

        cudaredist build --cuda 13.0 --platform linux-x86_64 --output set.json
        cudaredist materialize set.json --output cuda --component compiler  # needs a package index
        cudaredist materialize set.json --output all --check  # needs a package index, exit code 1

    A component or package includes its dependencies. The toolkit works with CMake, CUDA_HOME,
    containers and Bazel. Archives are downloaded, verified, then unpacked. The root
    appears only when all of its files are verified. If a run is interrupted, the next one resumes
    it. A run with other components adds packages; use --replace to remove some.

    With --target-set, the root contains the compilers of SET, and the headers and libraries of
    TARGET_SET, in `targets/sbsa-linux` or `targets/aarch64-linux`.

    With --for, the component runtime has only the shared libraries that programs, libraries or
    environments need. --layout oci writes them as a container image.

    The root contains a record of every file for --verify and --remove. With --layout split, each
    output has its own tree, ROOT/PACKAGE/OUTPUT, instead of the one that nvcc and CMake expect.
    """
    from cudaredist.commands.materialize.check_root import check_root
    from cudaredist.commands.materialize.materialize_set import materialize_set
    from cudaredist.commands.materialize.root import remove_root, verify_root
    from cudaredist.commands.materialize.text import toolkit_text

    session.share_files()
    # The work may replace the working folder, and relative paths with it.
    root = Path(options.root).absolute()
    if options.check and options.package_set is not None:
        report = check_root(options, options.package_set, session)
    elif options.package_set is not None:
        report = materialize_set(options, options.package_set, session)
    elif options.remove:
        report = remove_root(options.root)
    else:
        report = verify_root(options.root)
    code = session.finish(report, toolkit_text)
    if report.status == "written" and report.layout == "merged":
        home = quoted(str(root))
        session.suggest([f"export CUDA_HOME={home} PATH={home}/bin:$PATH"])
    return code
