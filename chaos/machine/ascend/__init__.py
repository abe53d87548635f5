"""The vendor's tools on an Ascend machine: what they print, and which device a rank trains on."""
