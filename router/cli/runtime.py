"""`pointsman runtime serve`: one decision model behind the System One protocol, for this router or for others."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from router.observe import configure_logging

if TYPE_CHECKING:
    from router.cli._types import Verbs


def add(verbs: Verbs) -> None:
    """Declare `runtime serve`."""
    runtime = verbs.add_parser("runtime", help="serve a decision model")
    actions = runtime.add_subparsers(dest="action", required=True, metavar="ACTION")
    serve = actions.add_parser("serve", help="answer System One requests until SIGTERM")
    serve.add_argument("--artifact", required=True, help="a directory, owner/name@commit, or `builtin`")
    serve.add_argument("--pull", action="store_true", help="fetch a model of a hub that was not pulled before")
    where = serve.add_mutually_exclusive_group()
    where.add_argument("--uds", type=Path, help="Unix socket to listen on")
    where.add_argument("--port", type=_port, default=8100, help="port to listen on when --uds is absent; default 8100")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on when --uds is absent")
    _add_engine(serve)
    serve.add_argument(
        "--enable-shared-context",
        action="store_true",
        help="keep the tokens of texts across calls; models that read a state once need not",
    )
    serve.add_argument("--served-name", type=_name, help="the model's public name; default: the artifact's own")
    serve.add_argument(
        "--alias", type=_name, action="append", default=[], help="another name that it answers to; repeatable"
    )
    serve.add_argument("--api-key-env", metavar="VAR", help="environment variable with the key that callers must send")
    serve.add_argument("--api-key-file", type=Path, metavar="FILE", help="file with keys, one a line; any of them does")
    serve.add_argument(
        "--insecure-no-auth", action="store_true", help="listen without a key on an address that others reach"
    )
    serve.add_argument("--max-request-bytes", type=_size, help="largest body, before and after decoding; default 8 MiB")
    serve.add_argument("--parent-pid", type=int, help="stop when this process, the parent, is gone")
    serve.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    serve.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM; 1 when the artifact, the device, the address or the keys are not what was asked for."""
    from router.runtime.bounds import Wishes  # noqa: PLC0415
    from router.runtime.devices import Placement  # noqa: PLC0415
    from router.runtime.errors import RuntimeFault  # noqa: PLC0415
    from router.runtime.keys import KeyFault, read_keys  # noqa: PLC0415
    from router.runtime.listing import Names  # noqa: PLC0415
    from router.runtime.serve import Admission, Loading, serve  # noqa: PLC0415 - only this verb pays for ONNX Runtime
    from router.runtime.server import MAX_BODY_BYTES  # noqa: PLC0415

    configure_logging(arguments.log_level)
    try:
        if arguments.pull:
            _pull(arguments.artifact)
        serve(
            arguments.artifact,
            host=None if arguments.uds else arguments.host,
            port=None if arguments.uds else arguments.port,
            uds=str(arguments.uds) if arguments.uds else None,
            admission=Admission(
                Names(arguments.served_name, tuple(arguments.alias)),
                read_keys(arguments.api_key_env, arguments.api_key_file, os.environ),
                insecure=arguments.insecure_no_auth,
                max_body_bytes=arguments.max_request_bytes or MAX_BODY_BYTES,
            ),
            loading=Loading(
                Placement(arguments.device, arguments.precision, arguments.gpu_mem_limit),
                arguments.enable_shared_context,
                Wishes(
                    arguments.max_queue,
                    arguments.max_queued_tokens,
                    arguments.max_batch_tokens,
                    None if arguments.batch_window_ms is None else arguments.batch_window_ms / 1000,
                ),
            ),
            parent_pid=arguments.parent_pid,
        )
    except (RuntimeFault, KeyFault, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _pull(artifact: str) -> None:
    from router.runtime.hub import parse_reference, pull  # noqa: PLC0415

    reference = parse_reference(artifact)
    if reference is not None and not Path(artifact).is_dir():
        pull(reference)


def _add_engine(serve: argparse.ArgumentParser) -> None:
    """Where the model runs, how much may wait for it, and how large its batches may be."""
    serve.add_argument("--device", default="auto", help="auto, cpu or cuda:N")
    serve.add_argument("--precision", choices=("auto", "fp16"), default="auto", help="fp16: the half-precision graph")
    serve.add_argument("--gpu-mem-limit", type=_positive, metavar="BYTES", help="bound of the GPU memory that is used")
    serve.add_argument("--max-queue", type=_positive, metavar="N", help="requests that may wait; default 256")
    serve.add_argument("--max-queued-tokens", type=_positive, metavar="N", help="their tokens; default 4194304")
    serve.add_argument(
        "--max-batch-tokens", type=_positive, metavar="N", help="padding included; default 512 on a CPU, 65536 on a GPU"
    )
    serve.add_argument(
        "--batch-window-ms",
        type=_window,
        metavar="MS",
        help="how long an idle model waits for requests that are being prepared; default 2",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError("a port from 1 to 65535")
    return int(text)


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("a name that is not blank")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 1 << 53:
        raise argparse.ArgumentTypeError("a whole number above 0")
    return int(text)


def _window(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1000:
        raise argparse.ArgumentTypeError("milliseconds from 0 to 1000")
    return value


def _size(text: str) -> int:
    if not text.isdecimal() or not 1024 <= int(text) <= 1 << 30:
        raise argparse.ArgumentTypeError("a number of bytes from 1024 to 1073741824")
    return int(text)
