"""Run a whole notebook as the command of a task: ``python "$PAI_BOOT" notebook FILE``.

It runs in the task's interpreter, with nbclient and ipykernel, which the boot process has provided before.
All of ours that it needs is in the archive. What it tells: the log gets what the cells print, and one line
per cell; ``$PAI_METRICS_FILE`` gets how far it is; the executed notebook grows in ``$PAI_OUTPUT_DIR``.
"""
