"""Jobs of MindSpeed-LLM and Megatron: their arguments say what is trained, and how it is protected."""
