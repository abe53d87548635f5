"""Whether MindSpore and MindIO TFT, as installed, fit together: read from their files, without importing either."""
