# An image for nodes of the platform docker that brings a Python of its own:
#   docker build -t chaos-node:full .
#   cluster: {platform: docker, docker: {image: "chaos-node:full", python: /usr/local/bin/python3}}
# Where no registry can be reached, `chaos image` makes one that borrows this host's Python.
FROM python:3.11-slim
COPY pyproject.toml README.md /src/
COPY chaos /src/chaos
RUN pip install --no-cache-dir '/src[mindspore]' && rm -rf /src
