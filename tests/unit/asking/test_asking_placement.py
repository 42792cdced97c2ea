from router.asking.placement import Placement, model_name, placements
from tests.unit.asking.asking_builders import deployment, managed


def test_one_artifact_on_one_device_is_one_process() -> None:
    found = placements(
        [managed("a"), managed("b"), managed("c", device="cuda:0"), managed("d", "/models/other"), deployment("e")]
    )
    assert found == (
        Placement("/models/tiny", "cpu"),
        Placement("/models/tiny", "cuda:0"),
        Placement("/models/other", "cpu"),
    )


def test_shared_processes_are_called_by_one_name() -> None:
    assert model_name(managed("a")) == model_name(managed("b")) == "tiny"
    assert model_name(managed("a", "vllm-sr/vela3-fast")) == "vela3-fast"
    assert model_name(deployment("far", served_name="their-name")) == "their-name"


def test_keys_are_short_stable_and_distinct() -> None:
    keys = {Placement(artifact, device).key for artifact in ("/a/m", "/b/m", "x" * 300) for device in ("cpu", "cuda:0")}
    assert len(keys) == 6
    assert all(len(key) <= 33 and "/" not in key for key in keys)
    assert Placement("/a/m", "cpu").key == Placement("/a/m", "cpu").key
