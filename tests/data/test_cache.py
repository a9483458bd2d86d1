from __future__ import annotations

import csv
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2cp.data import cache as cache_module
from d2cp.data import load_images, load_table, open_images, quarantine, usable
from d2cp.data import store as store_module
from d2cp.data.images import decode, to_square
from d2cp.data.store import ImageStore, MemmapStore
from d2cp.errors import DataError
from image_files import Tree, csv_set, encode, picture

ALL = np.arange(24)
BUILD = """
import sys
from d2cp.data import load_table, open_images
from d2cp.errors import DataError
try:
    print(open_images(load_table(sys.argv[1]), 64, sys.argv[2], quiet=True).key)
except DataError as error:
    sys.exit(str(error))
"""


def opened(root: Path, cache: Path, size: int = 16) -> MemmapStore:
    store = open_images(load_table(root), size, cache)
    assert isinstance(store, MemmapStore)
    return store


def literal(root: Path, store: ImageStore) -> np.ndarray:
    files = sorted((root / "img").iterdir())
    return np.stack([to_square(decode(f.read_bytes()), store.size) for f in files])


def refuse_to_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(cache_module, "_build", never)


def test_pixels_are_those_of_the_files(tree: Tree, cache: Path) -> None:
    root = tree(csv_set())
    store = opened(root, cache)
    assert np.array_equal(store[ALL], literal(root, store)) and store.n == 24
    assert np.array_equal(store[ALL[::-1]], store[ALL][::-1])


def test_second_opening_decodes_nothing(
    tree: Tree, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(csv_set())
    first = opened(root, cache)
    refuse_to_decode(monkeypatch)
    second = opened(root, cache)
    assert second.key == first.key and np.array_equal(second[ALL], first[ALL])
    # Part of the table, another order, or a moved folder: the same images, the same entry.
    part = load_table(root).subset(ALL[5:15])
    assert np.array_equal(open_images(part, 16, cache)[ALL[:10]], first[ALL[5:15]])
    os.rename(root, root.parent / "moved")
    assert opened(root.parent / "moved", cache).key == first.key


def test_content_and_settings_are_the_key(tree: Tree, cache: Path) -> None:
    root = tree(csv_set())
    first = opened(root, cache)
    assert opened(root, cache, 20).folder != first.folder
    stretched = open_images(load_table(root), 16, cache, "stretch")
    assert not np.array_equal(stretched[ALL], first[ALL])
    (root / "img/03.png").write_bytes(encode(picture(1000)))
    changed = opened(root, cache)
    assert changed.key != first.key
    assert np.array_equal(changed[ALL], literal(root, changed))


@pytest.mark.parametrize(
    "damage",
    [
        *("truncated", "flipped", "touched", "manifest", "digests"),
        *("no pixels.u8", "no manifest.json", "no digests.bin"),
    ],
)
def test_a_damaged_entry_is_built_again(tree: Tree, cache: Path, damage: str) -> None:
    root = tree(csv_set())
    folder = opened(root, cache).folder
    pixels = folder / "pixels.u8"
    data = bytearray(pixels.read_bytes())
    times = (pixels.stat().st_atime_ns, pixels.stat().st_mtime_ns)
    if damage.startswith("no "):
        (folder / damage[3:]).unlink()
    elif damage == "truncated":
        pixels.write_bytes(data[:-1])
    elif damage in ("flipped", "touched"):
        data[1234] ^= 16
        pixels.write_bytes(data)
        if damage == "flipped":  # as a failing disk does it: without a trace in the time stamp
            os.utime(pixels, ns=times)
    else:
        path = folder / ("manifest.json" if damage == "manifest" else "digests.bin")
        path.write_bytes(path.read_bytes()[:-20])
    store = opened(root, cache)
    assert np.array_equal(store[ALL], literal(root, store))


def test_large_entries_are_verified_when_their_time_stamp_changed(
    tree: Tree, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "ALWAYS_VERIFY_BYTES", 0)
    root = tree(csv_set())
    pixels = opened(root, cache).folder / "pixels.u8"
    data = bytearray(pixels.read_bytes())
    data[99] ^= 1
    pixels.write_bytes(data)
    store = opened(root, cache)
    assert np.array_equal(store[ALL], literal(root, store))


def test_unreadable_images_are_listed_never_painted(tree: Tree, cache: Path) -> None:
    whole = encode(picture(4, 300, 200), "JPEG")
    bad = {"img/01.png": whole[: len(whole) // 2], "img/02.png": b"<html>", "img/07.png": b""}
    root = tree(csv_set(24, bad))
    table = load_table(root)
    for store in (open_images(table, 16, cache), open_images(table, 16, cache)):
        assert isinstance(store, MemmapStore)
        assert sorted(store.bad) == [1, 2, 7]
        with pytest.raises(DataError, match="row 2 is in quarantine: a web page"):
            store[np.array([0, 2])]
        records = quarantine(table, store.bad)
        assert [r["id"] for r in records] == ["img/01.png", "img/02.png", "img/07.png"]
        assert [r["split"] for r in records] == ["val", "test", "val"]
        with (store.folder / "quarantine.csv").open(newline="") as file:
            assert sorted(row["file"] for row in csv.DictReader(file)) == sorted(bad)
    good = usable(table, store)
    assert len(good) == 21
    again, images = load_images(table, 16, cache)
    assert again.ids.tolist() == good.ids.tolist() and len(images) == 21
    assert np.array_equal(images[np.array([1])], store[np.array([3])])
    assert np.array_equal(open_images(good, 16, cache)[np.array([1])], store[np.array([3])])
    with pytest.raises(ValueError, match="another table"):
        usable(good, store)


def test_no_image_at_all(tree: Tree, cache: Path) -> None:
    root = tree({"metadata.csv": csv_set()["metadata.csv"]})
    with pytest.raises(DataError, match=r"none of the 24 images .* missing file"):
        open_images(load_table(root), 16, cache)
    root = tree({f"img/{i:02d}.png": b"no" for i in range(24)})
    with pytest.raises(DataError, match="can be decoded"):
        open_images(load_table(root), 16, cache)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="asks Linux what is mapped")
def test_mapped_memory_stays_flat(tree: Tree, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs over 45 MB of pixels with a bound of 4 MB keep less than half of them mapped."""
    monkeypatch.setattr(store_module, "RESIDENT_BYTES", 4 * 2**20)
    store = opened(many(tree, 60), cache, 512)
    reference = [store[np.array([row])].sum() for row in range(60)]

    def mapped() -> int:
        text = Path("/proc/self/smaps").read_text().split(str(store.folder / "pixels.u8"))[1]
        return int(next(line for line in text.splitlines() if line.startswith("Rss")).split()[1])

    for _ in range(2):
        assert [store[np.array([row])].sum() for row in range(60)] == reference
        assert mapped() < 20_000


def test_stores_travel_to_other_processes(tree: Tree, cache: Path) -> None:
    store = opened(tree(csv_set()), cache)
    sent = pickle.dumps(store)
    assert len(sent) < 20_000  # the path travels, not the pixels
    copy: MemmapStore = pickle.loads(sent)
    assert np.array_equal(copy[ALL], store[ALL]) and copy.key == store.key


def many(tree: Tree, n: int = 600) -> Path:
    big = {f"img/{i:03d}.jpg": encode(picture(i, 400, 300), "JPEG") for i in range(60)}
    files = {f"img/{i:03d}.jpg": big[f"img/{i % 60:03d}.jpg"] + b"\0" * (i + 1) for i in range(n)}
    lines = ["filename,split,y", *(f"{name},{i % 3},{i % 2}" for i, name in enumerate(files))]
    return tree({**files, "metadata.csv": "\n".join(lines).encode()})


def killed_half_way(root: Path, cache: Path) -> bool:
    """Was a builder killed after it began to write and before it finished?"""
    arguments = [sys.executable, "-c", BUILD, str(root), str(cache)]
    builder = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    while builder.poll() is None and not list(cache.glob("images/*/.*/pixels.u8")):
        time.sleep(0.002)
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    return bool(list(cache.glob("images/*/.*")))


def test_a_killed_builder_leaves_nothing_that_is_read(tree: Tree, tmp_path: Path) -> None:
    root = many(tree)
    # On a busy machine the kill can come too late; then it is tried again.
    cache = next(c for c in (tmp_path / f"c{i}" for i in range(5)) if killed_half_way(root, c))
    assert not list(cache.glob("images/*/*/manifest.json"))
    store = opened(root, cache, 64)
    rows = np.arange(0, 600, 97)
    for row, image in zip(rows, store[rows], strict=True):
        data = (root / f"img/{row:03d}.jpg").read_bytes()
        assert np.array_equal(image, to_square(decode(data), 64))
    assert not list(cache.glob("images/*/.*"))  # what the dead one left was cleared


def test_two_builders_at_once(tree: Tree, cache: Path) -> None:
    root = many(tree, 150)
    arguments = [sys.executable, "-c", BUILD, str(root), str(cache)]
    builders = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    keys = {builder.communicate()[0] for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0] and len(keys) == 1
    assert len(list(cache.glob("images/*/*/manifest.json"))) == 1


def test_a_full_disk_is_a_clear_error(tree: Tree, cache: Path) -> None:
    root = many(tree, 150)
    arguments = [sys.executable, "-c", BUILD, str(root), str(cache)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    builder = subprocess.run(arguments, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    assert builder.returncode == 1
    assert "image cache cannot be written" in builder.stderr and "D2CP_CACHE" in builder.stderr
    assert "Traceback" not in builder.stderr
    assert not list(cache.glob("images/*/.*")) and not list(cache.glob("images/*/*/manifest.json"))


def test_too_little_space_is_told_before_decoding(
    tree: Tree, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = cache_module.shutil._ntuple_diskusage(10**6, 10**6, 100)
    monkeypatch.setattr(cache_module.shutil, "disk_usage", lambda _: usage)
    refuse_to_decode(monkeypatch)
    with pytest.raises(DataError, match=r"MB needed, .* MB free"):
        opened(tree(csv_set()), cache)


def test_an_unwritable_cache_is_a_clear_error(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written"):
        opened(tree(csv_set()), tmp_path / "file")


def test_default_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("D2CP_CACHE", raising=False)
    assert cache_module.default_cache_dir() == tmp_path / "xdg" / "d2cp"
    monkeypatch.setenv("D2CP_CACHE", str(tmp_path / "own"))
    assert cache_module.default_cache_dir() == tmp_path / "own"


def test_a_wrong_digest_in_the_index_heals(tree: Tree, cache: Path) -> None:
    """Two digests exchanged would serve one image's pixels for the other's."""
    table = load_table(tree(csv_set()))
    right = np.array(open_images(table, 16, cache)[np.arange(len(table))])
    (index,) = (cache / "digests").iterdir()
    whole = index.read_text()
    header, first, second, *rest = whole.splitlines()
    (a, one), (b, other) = first.rsplit(",", 1), second.rsplit(",", 1)
    index.write_text("\n".join([header, f"{a},{other}", f"{b},{one}", *rest]) + "\n")
    assert np.array_equal(open_images(table, 16, cache)[np.arange(len(table))], right)
    assert index.read_text() == whole
    index.write_text(whole.replace(one, "0" * len(one)))
    assert np.array_equal(open_images(table, 16, cache)[np.arange(len(table))], right)
    assert index.read_text() == whole


def test_new_content_with_the_old_size_and_time_is_seen(tree: Tree, cache: Path) -> None:
    root = tree(csv_set())
    table = load_table(root)
    path = root / "img" / "00.png"
    before = np.array(open_images(table, 16, cache)[np.array([0])])
    status, data = path.stat(), Image.effect_noise((20, 16), 9).convert("RGB")
    path.write_bytes(encode(data)[: status.st_size].ljust(status.st_size, b"\0"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = path.stat()
    assert (again.st_size, again.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    store = open_images(table, 16, cache)
    assert 0 in store.bad or not np.array_equal(store[np.array([0])], before)


def test_a_damaged_digest_index_is_computed_again(tree: Tree, cache: Path) -> None:
    root = tree(csv_set())
    key = opened(root, cache).key
    (index,) = (cache / "digests").iterdir()
    index.write_text("name,size\n1,2\n")
    assert opened(root, cache).key == key


def test_digits_at_another_size_are_resampled_into_the_cache(cache: Path) -> None:
    table = load_table("cmnist", limit=40)
    native, larger = open_images(table, 28), open_images(table, 32, cache)
    rows = np.arange(len(table))
    for small, big in zip(native[rows], larger[rows], strict=True):
        resized = Image.fromarray(small).resize((32, 32), Image.Resampling.BILINEAR)
        assert np.array_equal(big, np.asarray(resized))


def test_building_holds_few_images_in_memory(tree: Tree, cache: Path) -> None:
    """The number of decoded images alive at once is bounded, however many there are."""
    root = tree(csv_set(300))
    table = load_table(root)
    alive, most, lock = 0, 0, threading.Lock()

    class Counted(np.ndarray):
        def __del__(self) -> None:
            nonlocal alive
            with lock:
                alive -= 1

    from d2cp.data import image_access as openimages

    original = openimages.to_square

    def counting(*args: object, **kwargs: object) -> np.ndarray:
        nonlocal alive, most
        array = np.asarray(original(*args, **kwargs)).copy().view(Counted)  # type: ignore[arg-type]
        with lock:
            alive += 1
            most = max(most, alive)
        return array

    patch = pytest.MonkeyPatch()
    patch.setattr(openimages, "to_square", counting)
    try:
        open_images(table, 16, cache)
    finally:
        patch.undo()
    assert 0 < most <= 8 * 16 + 20 < 300


def test_manifest_is_plain_json(tree: Tree, cache: Path) -> None:
    manifest = json.loads((opened(tree(csv_set()), cache).folder / "manifest.json").read_text())
    assert manifest["count"] == 24 and manifest["settings"]["resampling"] == "BILINEAR"
