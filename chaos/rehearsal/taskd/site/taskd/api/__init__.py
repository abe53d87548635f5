"""The interfaces of ``taskd`` that MindSpore's launcher looks for."""
