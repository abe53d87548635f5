"""The job that ``chaos init --example`` writes: files to be copied, of which nothing is imported."""
