"""The part of chaos inside a rank: standard library only, Python 3.9 or later, loaded without touching the job.

``site/sitecustomize.py`` is put on the job's PYTHONPATH. It does nothing unless CHAOS_AGENT names a configuration, and
then calls :func:`chaos.agent.start.start`. Where PYTHONPATH is overwritten, ``chaos-agent.pth`` puts it on the path of
the Python that it is installed in; ``callback/`` is for MindFormers where neither may be.
"""
