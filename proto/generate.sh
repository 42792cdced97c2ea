#!/bin/sh
# Makes router/gateway/proto/*_pb2.py and .pyi from proto/*.proto. See README.md beside this file.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
# The mapped path gives the descriptor a name of our own in protobuf's process-wide pool.
exec "$python" -m grpc_tools.protoc -Irouter/gateway/proto=proto \
    --python_out=. --pyi_out=. router/gateway/proto/ext_proc.proto
