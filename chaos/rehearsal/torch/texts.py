"""The texts by which torch_npu reports errors, for those by which MindSpore does.

A fault kind has MindSpore's text. MindIO TFT's wrapper around the training of PyTorch knows errors by torch_npu's.
"""

from __future__ import annotations

_TEXTS = {
    "UCEError error occurs when execute, error_code=507053": "UCE ERROR. The error code is 507053",
    "UCEError error occurs when execute, error_code=507054": "HBM MULTI BIT ECC ERROR. The error code is 507054",
    "HCCEError error occurs when execute, error_code=507904": "HCCL OP RETRY FAILED. The error code is 507904",
    "SuspectRemoteError error occurs when execute, error_code=507057": "SUSPECT REMOTE ERROR. The error code is 507057",
    "ForceStopError error occurs when execute": "FORCE STOP. The device was stopped",
}


def of_torch_npu(text: str) -> str:
    """Return an error's text as torch_npu has it; a text that is none of MindSpore's stays."""
    for known, other in _TEXTS.items():
        if known in text:
            return text.replace(known, other)
    return text
