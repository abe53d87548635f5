"""Seeded defects that are put into the processes of a job: small changes to the stand-ins, one file a theme.

Loaded into ranks, the launcher and the host of the SDK's controller: standard library only, Python 3.9. Each public
function is one defect. It takes the agent of its process, and changes a class or function of a stand-in,
or one that a job calls, once its module is imported. When it changes something it reports this by
:func:`chaos.selftest.live.acted.acted`; a run without such a report proves nothing.
"""
