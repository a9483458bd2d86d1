"""A practitioner's folder of images, with bad files and an awkward class name, through Python."""

import numpy as np
import pytest
from PIL import Image

from d2cp import D2CP, load_table
from d2cp.core.files import read_json
from d2cp.errors import DataError, RunError
from e2e_settings import nested

CLASSES = ("cats", '<b>"dogs" & co')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two classes told apart by a dark or bright square; the border colour is the shortcut."""
    root = tmp_path_factory.mktemp("photos")
    generator = np.random.default_rng(0)
    for label, name in enumerate(CLASSES):
        (root / name).mkdir()
        for i in range(60):
            agrees = generator.random() < 0.9
            pixels = generator.integers(0, 40, (32, 32, 3))
            pixels[:6, :, label if agrees else 1 - label] += 200
            pixels[12:24, 12:24] += 60 + 90 * label
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{i}.png")
    (root / "cats" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n half of a file")
    return root


def test_fit_predict_evaluate_save(folder, tmp_path):
    settings = nested(**{"train_limit": 0, "val_limit": 0, "test_limit": 0})
    model = D2CP(settings=settings, out=tmp_path / "run", quiet=True).fit(folder)
    data = read_json(tmp_path / "run" / "data" / "summary.json")
    assert data["quarantined"] == {"cats": 1}
    files = sorted((folder / "cats").glob("1?.png"))
    shares = model.predict_proba(files)
    assert shares.shape == (10, 2) and np.allclose(shares.sum(1), 1)
    assert set(model.predict(files)) <= set(model.classes_)
    with Image.open(files[0]) as image:
        assert np.allclose(model.predict_proba([image]), shares[:1], atol=1e-6)
        assert np.allclose(model.predict_proba([np.asarray(image)]), shares[:1], atol=1e-6)
    (result,) = model.evaluate()
    assert result["method"] == "d2cp" and result["grouping"] == "pseudo"
    again = model.evaluate(folder)
    assert again[0]["mean"] == pytest.approx(result["mean"])
    model.save_pretrained(tmp_path / "model")
    loaded = D2CP.from_pretrained(tmp_path / "model")
    assert list(loaded.classes_) == list(model.classes_)
    assert np.allclose(loaded.predict_proba(files), shares, atol=1e-6)
    assert np.array_equal(loaded.predict(str(files[0])), model.predict(files[:1]))
    with pytest.raises(RunError, match="loaded from"):
        loaded.evaluate()
    with pytest.raises(RunError, match="is a run") as refused:
        D2CP.from_pretrained(tmp_path / "run")
    assert f"d2cp export {tmp_path / 'run'} --to" in refused.value.remedy
    with pytest.raises(DataError, match="image 1"):
        loaded.predict([files[0], tmp_path / "absent.png"])


def test_not_fitted_says_so():
    with pytest.raises(RunError, match="not fitted"):
        D2CP().predict(["x.png"])


def test_one_class_only_is_an_error_not_a_run(tmp_path):
    (tmp_path / "only").mkdir()
    for i in range(6):
        Image.new("RGB", (8, 8), (i, i, i)).save(tmp_path / "only" / f"{i}.png")
    with pytest.raises(DataError):
        load_table(tmp_path)
