"""Seeded defects that are put into the processes of a job: small changes to the stand-ins, one file a theme.

Loaded into ranks, the launcher and whoever hosts the SDK's controller: standard library only, Python 3.9. Each public
function is one defect. It takes the agent of the process that it is in, and changes a class or function of a stand-in,
or of what a job calls, once its module is imported. Where it does change something it says so by
:func:`chaos.selftest.live.acted.acted`; a run in which nobody has said so proves nothing.
"""
