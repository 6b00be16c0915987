"""Start of the archive: ``python -I -S boot.pyz SPEC`` boots a task.

``python boot.pyz missing FILE…`` checks requirements, ``python boot.pyz fetch REQUEST`` brings data,
``python boot.pyz notebook FILE`` runs a notebook, ``python boot.pyz freeze FILE`` lists what is installed.
"""

import sys

if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "missing":
        from paiboot.missing import main  # type: ignore[import-not-found]
    elif len(sys.argv) > 2 and sys.argv[1] == "fetch":
        from paiboot.fetch import main  # type: ignore[import-not-found]
    elif len(sys.argv) > 2 and sys.argv[1] == "notebook":
        from paiboot.notebook.main import main  # type: ignore[import-not-found]
    elif len(sys.argv) > 2 and sys.argv[1] == "freeze":
        from paiboot.freeze import main  # type: ignore[import-not-found]
    else:
        from paiboot.boot import main  # type: ignore[import-not-found]
    sys.exit(main(sys.argv))
