"""Start of the archive: ``python -I -S boot.pyz SPEC`` boots a task, ``… pod SPEC`` the task of a pod.

``… openpai SPEC`` boots a task of a job on OpenPAI.

``python boot.pyz missing FILE…`` checks requirements, ``python boot.pyz fetch REQUEST`` brings data,
``python boot.pyz notebook FILE`` runs a notebook, ``python boot.pyz freeze FILE`` lists what is installed,
``python boot.pyz outputs send|taken SPEC`` lets the outputs of a pod be fetched.
"""

import sys

_MODULES = {
    "missing": "missing",
    "fetch": "fetch",
    "notebook": "notebook.main",
    "freeze": "freeze",
    "pod": "pod",
    "openpai": "openpai",
    "outputs": "outgoing",
}

if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 2 else ""
    module = __import__("paiboot." + _MODULES.get(word, "boot"), fromlist=["main"])
    sys.exit(module.main(sys.argv))
