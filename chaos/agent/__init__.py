"""The part of chaos inside a rank: standard library only, Python 3.9 or later, loaded without touching the job.

``site/sitecustomize.py`` is put on the job's PYTHONPATH. It does nothing unless CHAOS_AGENT names a configuration, and
then calls :func:`chaos.agent.start.start`.
"""
