"""mirror: the manifests and archives of a selection in a folder for a web server."""

from cudaredist.cli.session import Session, command, warnings_of
from cudaredist.commands.mirror.options import REFUSED, MirrorOptions


@command(MirrorOptions, REFUSED)
def mirror(options: MirrorOptions, session: Session) -> int:
    """Sync, verify or prune a mirror for a web server.

    Examples:

        cudaredist mirror sync ./mirror --redist cuda --version 13.0.2  # needs network
        cudaredist mirror sync ./mirror --redist cuda --package cuda_nvcc  # needs network
        cudaredist mirror verify ./mirror  # needs ./mirror

    - **sync** downloads and verifies the selected manifests and archives. It resumes interrupted
      runs, and repairs damaged files. By default, it detects these by their size and time. With
      --checksum, it compares the hash of every file. With --check, it fetches manifests only, and
      reports the files that it would write.
    - **verify** compares every byte with the lock, offline.
    - **prune** removes stray files. With a selection, keeps the selected releases and removes the
      rest.

    DIR has the layout of NVIDIA's server for --base-url, and a package index in DIR/simple for
    --channel wheels. Equal archives are hard links.
    """
    from cudaredist.commands.mirror.mirror_folder import MirrorFolder
    from cudaredist.commands.mirror.prune_mirror import MirrorPrune
    from cudaredist.commands.mirror.sync_mirror import MirrorSync
    from cudaredist.commands.mirror.text import prune_text, sync_errors, sync_text, verify_text
    from cudaredist.commands.mirror.verify_mirror import MirrorVerification

    session.share_files(with_group=True)
    folder = MirrorFolder(options.folder, may_write=not options.check)
    if options.action == "verify":
        jobs, progress = options.jobs.count, session.progress("files")
        return session.finish(MirrorVerification(folder, jobs, progress).run(), verify_text)
    if options.action == "prune":
        return session.finish(MirrorPrune(options, session, folder).run(), prune_text)
    report = MirrorSync(options, session, folder).run()
    return session.finish(
        report, sync_text, warnings=warnings_of(report.manifests), errors=sync_errors(report)
    )
