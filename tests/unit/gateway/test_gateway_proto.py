"""Our subset of Envoy's messages against Envoy's own, and the generated modules against the .proto file."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from router.gateway.proto import ext_proc_pb2

ROOT = Path(__file__).parents[3]
EXT_PROC = "service.ext_proc.v3"
HOMES = {
    "HeaderMap": "config.core.v3",
    "HeaderValue": "config.core.v3",
    "HeaderValueOption": "config.core.v3",
    "HttpStatus": "type.v3",
    "ProcessingMode": "extensions.filters.http.ext_proc.v3",
}
NAMES = sorted(ext_proc_pb2.DESCRIPTOR.message_types_by_name)
KINDS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_ENUM: "enum",
    FieldDescriptor.TYPE_MESSAGE: "message",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT32: "uint32",
}


def home(name: str) -> Any:
    """The module of Envoy's full messages that holds `name`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its generated code calls what its own libraries have deprecated
        return importlib.import_module(f"envoy_data_plane.envoy.{HOMES.get(name, EXT_PROC)}")


def envoys(name: str) -> Any:
    return getattr(home(name), name)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


@pytest.mark.parametrize("name", NAMES)
def test_each_field_has_envoys_number_and_type(name: str) -> None:
    theirs = envoys(name)._betterproto.meta_by_field_name
    for field in ext_proc_pb2.DESCRIPTOR.message_types_by_name[name].fields:
        meta = theirs[field.name]
        assert meta.number == field.number, field.full_name
        if (name, field.name) == ("HttpStatus", "code"):
            assert (KINDS[field.type], meta.proto_type) == ("uint32", "enum")  # a plain number on purpose; same bytes
            continue
        assert meta.proto_type == ("map" if is_map(field) else KINDS[field.type]), field.full_name
        assert meta.repeated == (field.is_repeated and not is_map(field)), field.full_name
        assert meta.group == (field.containing_oneof.name if field.containing_oneof else None), field.full_name


@pytest.mark.parametrize(
    ("ours", "module", "theirs"),
    [
        (ext_proc_pb2.ProcessingMode.BodySendMode, "ProcessingMode", "ProcessingModeBodySendMode"),
        (ext_proc_pb2.ProcessingMode.HeaderSendMode, "ProcessingMode", "ProcessingModeHeaderSendMode"),
        (ext_proc_pb2.CommonResponse.ResponseStatus, "CommonResponse", "CommonResponseResponseStatus"),
        (ext_proc_pb2.HeaderValueOption.HeaderAppendAction, "HeaderValueOption", "HeaderValueOptionHeaderAppendAction"),
    ],
)
def test_each_enum_has_envoys_numbers(ours: Any, module: str, theirs: str) -> None:
    assert dict(ours.items()) == {member.name: member.value for member in getattr(home(module), theirs)}


def filled(descriptor: Descriptor, choice: int, depth: int = 0) -> Message:
    """A message with every field set; of each oneof the `choice`th, counted around."""
    message = message_factory.GetMessageClass(descriptor)()
    for oneof in descriptor.oneofs:
        fill(message, oneof.fields[choice % len(oneof.fields)], choice, depth)
    for field in descriptor.fields:
        if field.containing_oneof is None:
            fill(message, field, choice, depth)
    return message


def fill(message: Any, field: FieldDescriptor, choice: int, depth: int) -> None:
    if field.full_name.startswith("google.protobuf."):
        return
    if is_map(field):
        getattr(message, field.name)["envoy.filters.http.ext_proc"].update({"request.path": "/v1"})
    elif field.message_type is not None and field.message_type.full_name == "google.protobuf.Struct":
        getattr(message, field.name).update({"pointsman": {"recipe": "default"}})
    elif field.message_type is not None and field.message_type.full_name == "google.protobuf.Duration":
        getattr(message, field.name).seconds = 7
    elif field.message_type is not None:
        value = filled(field.message_type, choice, depth + 1)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            getattr(message, field.name).CopyFrom(value)
    else:
        value = scalar(field)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)


def scalar(field: FieldDescriptor) -> Any:
    match KINDS[field.type]:
        case "bool":
            return True
        case "bytes":
            return b"\x00\xff raw"
        case "string":
            return f"text of {field.name}"
        case "uint32":
            return 529
        case _:
            assert field.enum_type is not None
            return field.enum_type.values[-1].number


def cases() -> Iterator[Any]:
    for name in NAMES:
        descriptor = ext_proc_pb2.DESCRIPTOR.message_types_by_name[name]
        widest = max([len(oneof.fields) for oneof in descriptor.oneofs], default=1)
        yield from (pytest.param(name, choice, id=f"{name}-{choice}") for choice in range(max(widest, 3)))


@pytest.mark.parametrize(("name", "choice"), list(cases()))
def test_messages_survive_envoys_own_classes(name: str, choice: int) -> None:
    ours = filled(ext_proc_pb2.DESCRIPTOR.message_types_by_name[name], choice)
    assert ours.ByteSize() > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs = envoys(name).parse(ours.SerializeToString())
    assert not theirs._unknown_fields
    assert type(ours).FromString(bytes(theirs)) == ours


def test_generated_modules_say_what_the_proto_file_says(tmp_path: Path) -> None:
    out = tmp_path / "set.bin"
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc", f"-Irouter/gateway/proto={ROOT / 'proto'}"),
        *(f"--descriptor_set_out={out}", "router/gateway/proto/ext_proc.proto"),
    ]
    subprocess.run(command, check=True, cwd=ROOT)
    (fresh,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    committed = descriptor_pb2.FileDescriptorProto()
    ext_proc_pb2.DESCRIPTOR.CopyToProto(committed)
    for file in (fresh, committed):
        drop_json_names(file.message_type)
    assert committed == fresh, "run proto/generate.sh"


def drop_json_names(messages: Any) -> None:
    for message in messages:
        for field in message.field:
            field.ClearField("json_name")
        drop_json_names(message.nested_type)


def test_the_modules_run_on_the_oldest_protobuf_that_the_package_allows() -> None:
    text = (ROOT / "router/gateway/proto/ext_proc_pb2.py").read_text()
    assert "Protobuf Python Version: 6.31." in text, "see proto/README.md"
    assert '"protobuf>=6.31' in (ROOT / "pyproject.toml").read_text()
