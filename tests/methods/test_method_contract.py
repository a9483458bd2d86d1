"""One contract over all methods x {two classes, ten} x {prompts over images, frozen features}."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from d2cp.backbone import Backbone, load_backbone
from d2cp.backbone.text_tower import ClassText
from d2cp.compare.contract import selection_logits
from d2cp.compare.footing import Footing
from d2cp.compare.mined_groups import SUFFIX
from d2cp.compare.registry import BUILT_IN, chosen, method, methods
from d2cp.compare.task import Pseudo, Task
from d2cp.compare.tiers import FeatureSpace, PromptSpace
from d2cp.config.environments import EnvironmentsConfig
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.rng import numpy_generator
from d2cp.data import Table, load_table, open_images
from d2cp.debias.loop import Fitted
from d2cp.errors import ConfigError, D2CPError, DataError
from d2cp.pipeline.frozen_features import frozen_features

CASES = [(name, tier) for name in BUILT_IN for tier in methods()[name].spec.tiers]
MINED = [m.spec.name for m in chosen("all", "both") if m.spec.name.endswith(SUFFIX)]
EVERY = [*BUILT_IN, *MINED]
ONCE = [(name, method(name).spec.tiers[-1]) for name in EVERY]  # the quick tier, if it has it
BLIND = [name for name in EVERY if not method(name).spec.needs_groups]
NO_LOOP = ("ppa", "resample_solved")  # heads on frozen features: no pass, no checkpoint
GUIDE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
TABLES = {"two": "cmnist", "ten": "cmnist10"}


@pytest.fixture(scope="session")
def backbone() -> Backbone:
    return load_backbone("embedded")


@pytest.fixture(scope="session")
def tables() -> dict[str, Table]:
    sizes = {"train": 60, "val": 24, "test": 12, "test_balanced": 1}
    return {kind: load_table(name).subsample(sizes) for kind, name in TABLES.items()}


@pytest.fixture(scope="session")
def features(backbone, tables) -> dict[str, torch.Tensor]:
    return {
        kind: frozen_features(
            backbone, open_images(table, 28), np.arange(len(table)), 28, quiet=True
        )
        for kind, table in tables.items()
    }


def pseudo_of(table: Table) -> Pseudo:
    """Pseudo attributes that owe nothing to the true ones."""
    generator = numpy_generator(0, "test/pseudo")
    a = (table.y + (generator.random(len(table)) < 0.2)) % 2
    bits = (generator.random((2, len(table))) < 0.3).astype(np.int64)
    return Pseudo(a, 2, a + generator.random(len(table)), bits[0], bits[1])


def text_of(table: Table, width: int) -> ClassText:
    """Class vectors of a text encoder that never was."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(table.n_classes, 8, generator=generator)
    return ClassText(vectors, torch.randn(8, width, generator=generator))


@pytest.fixture
def footing(backbone, tables, features, make_config):
    def make(tier: str, kind: str, table: Table | None = None, **changes: object) -> Footing:
        table = table or tables[kind]
        settings = make_config(
            image_size=28, resize=28, selection="val_worst_class", batch_size=20, **changes
        )
        frozen = features[kind]
        space = (
            FeatureSpace(frozen, settings, train=table.rows("train"))
            if tier == "features"
            else PromptSpace(backbone, open_images(table, 28), frozen, settings, seed=3)
        )
        return Footing(
            table=table,
            space=space,
            config=settings,
            seed=3,
            budget=120,
            environments=EnvironmentsConfig(settings=2, steps=50, lr_exponents=(-2.0, -1.0)),
            mined=pseudo_of(table),
            text=text_of(table, frozen.shape[1]),
        )

    return make


def run(footing: Footing, name: str, checkpoints=None) -> torch.Tensor:
    one = method(name)
    task = footing.task(one.spec, checkpoints)
    predictor = one.fit(task, one.spec.values())
    assert predictor.trainable > 0
    assert (task.passes > 0) == (name not in NO_LOOP)
    if footing.equal == "passes":
        assert task.passes <= footing.budget
    return predictor.logits(footing.table.rows("test"))


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(("name", "tier"), CASES)
def test_fits_predicts_and_repeats(footing, name, tier, kind):
    one = footing(tier, kind)
    logits = run(one, name)
    assert logits.shape == (len(one.table.rows("test")), one.table.n_classes)
    assert torch.isfinite(logits).all()
    assert not torch.allclose(logits[0], logits[1])
    assert torch.equal(logits, run(one, name))


@pytest.mark.parametrize("name", EVERY)
def test_equal_epochs_give_every_training_its_images(footing, name):
    """No training is shorter than ERM's, whatever a step costs or another training took."""
    tier = method(name).spec.tiers[-1]
    one = replace(footing(tier, "two"), equal="epochs", budget=60)
    steps: list[int] = []
    real = Task.fit

    def counted(self: Task, *arguments: object, **named: object) -> Fitted:
        fitted = real(self, *arguments, **named)  # type: ignore[arg-type]
        steps.append(fitted.steps * self.plan(1, named.get("changes"))[0].batch_size)  # type: ignore[arg-type]
        return fitted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Task, "fit", counted)
        run(one, name)
    assert name in NO_LOOP or max(steps) > 60 - 20  # whole batches: at most one less


@pytest.mark.parametrize(("name", "tier"), ONCE)
def test_survives_a_missing_group(footing, tables, name, tier):
    table = tables["two"]
    groups = table.groups()
    rarest = np.argmin(np.bincount(groups[table.rows("train")]))
    # the rows stay where they are: those of the rarest group become rows of no use
    split = np.where((groups == rarest) & (table.split == 0), 3, table.split).astype(np.int8)
    logits = run(footing(tier, "two", replace(table, split=split)), name)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize(("name", "tier"), [c for c in ONCE if c[0] not in NO_LOOP])
def test_resumes_to_the_same_bits(footing, tmp_path: Path, name, tier):
    one = footing(tier, "two")
    whole = run(one, name)

    class KilledError(Exception):
        pass

    class Killing(Checkpointer):
        def save(self, *arguments: object) -> None:
            super().save(*arguments)  # type: ignore[arg-type]
            saved.append(arguments)
            if len(saved) == 3:
                raise KilledError

    def checkpoints(stage: str) -> Checkpointer:
        return Killing(tmp_path / stage, identity="same", every_steps=1)

    saved: list[object] = []
    with pytest.raises(KilledError):
        run(one, name, checkpoints)
    assert torch.equal(run(one, name, checkpoints), whole)


def reachable_arrays(start: object) -> list[np.ndarray]:
    """All arrays that can be reached from an object without passing through a module's globals."""
    seen, found, queue = {id(start)}, [], [start]
    while queue:
        item = queue.pop()
        if isinstance(item, np.ndarray):
            found.append(item)
        elif isinstance(item, torch.Tensor):
            found.append(item.detach().numpy())
        inner = list(gc.get_referents(item))
        if isinstance(item, np.ndarray) and item.base is not None:
            inner.append(item.base)
        for child in inner:
            skip = isinstance(child, type | type(gc)) or (
                isinstance(child, dict) and "__builtins__" in child
            )
            if not skip and id(child) not in seen:
                seen.add(id(child))
                queue.append(child)
    return found


def holds_attributes(task: object, table: Table) -> bool:
    train = table.rows("train")
    true, groups = table.a[train], table.groups()[train]
    for array in reachable_arrays(task):
        for wanted, rows in ((true, train), (groups, train)):
            flat = array.reshape(-1)
            if len(flat) == len(wanted) and np.array_equal(flat, wanted):
                return True
            if len(flat) == len(table) and np.array_equal(flat[rows], wanted):
                return True
    return False


@pytest.mark.parametrize("rule", ["val_worst_class", "val_true_groups", "val_pseudo_groups"])
@pytest.mark.parametrize("name", EVERY)
def test_attributes_are_not_in_the_task_of_a_method_that_may_not_see_them(footing, name, rule):
    """Whatever can be reached from the task holds no true attribute of a training row, unless the
    method declared that it sees them (then they are found: the search works)."""
    spec = method(name).spec
    one = footing("features", "two")
    if "images" in spec.needs:
        spec = replace(spec, needs=spec.needs - {"images"})  # the columns are the same
    one = replace(one, config=replace(one.config, selection=rule))
    assert holds_attributes(one.task(spec), one.table) == spec.sees_train_groups


@pytest.mark.parametrize("name", BLIND)
def test_permuted_attributes_change_nothing_for_them(footing, tables, name):
    tier = method(name).spec.tiers[-1]
    table = tables["two"]
    other = replace(table, a=np.random.default_rng(0).permutation(table.a))
    kept = {"source": table.source}  # the pixels stay: only the column changes
    first = run(footing(tier, "two", table), name)
    assert torch.equal(first, run(footing(tier, "two", replace(other, **kept)), name))


@pytest.mark.parametrize("name", [n for n in EVERY if n not in BLIND])
def test_group_methods_need_an_attribute_column(footing, tables, name):
    with pytest.raises(DataError, match="no attribute column"):
        run(footing("features", "two", tables["two"].without_attribute()), name)


@pytest.mark.parametrize("name", MINED)
def test_on_mined_groups_they_do_not(footing, tables, name):
    bare = run(footing("features", "two", tables["two"].without_attribute()), name)
    assert torch.equal(bare, run(footing("features", "two"), name))
    plain = name.removesuffix(SUFFIX)
    assert not torch.equal(bare, run(footing("features", "two"), plain))


@pytest.mark.parametrize("name", BUILT_IN)
def test_declared_rates_replace_the_preset_s(footing, name):
    spec = methods()[name].spec
    task = footing("features", "two").task(replace(spec, needs=spec.needs - {"images"}))
    for key in ("lr", "weight_decay"):
        preset = getattr(footing("features", "two").config, key)
        assert getattr(task.config, key) == (
            spec.params[key].default if key in spec.params else preset
        )
    given = footing("features", "two").task(
        replace(spec, needs=spec.needs - {"images"}), params={"lr": 0.07}
    )
    assert given.config.lr == 0.07


def test_asking_for_groups_undeclared_is_an_error(footing):
    task = footing("features", "two").task(methods()["erm"].spec)
    with pytest.raises(DataError, match="no group labels"):
        _ = task.groups


@pytest.mark.parametrize("name", ["masktune", "sas"])
def test_pixel_methods_refuse_frozen_features_in_plain_words(footing, name):
    with pytest.raises(ConfigError, match="cannot run on frozen features"):
        run(footing("features", "two"), name)


def test_test_labels_are_not_in_a_task(footing):
    one = footing("features", "two")
    task = one.task(methods()["d2cp"].spec)
    outside = ~np.isin(np.arange(len(one.table)), np.concatenate([task.train, task.val]))
    assert outside.any() and (task.y[outside] == -1).all()


@pytest.mark.parametrize("name", BUILT_IN)
def test_specs_are_complete_and_drawable(name):
    spec = methods()[name].spec
    assert spec.name == name and spec.title and spec.venue and spec.fidelity
    assert len(spec.fidelity) < 100
    assert f"(`{name}`)" in GUIDE and spec.fidelity in GUIDE
    drawn = [spec.draw(np.random.default_rng(s)) for s in range(5)]
    assert all(set(d) == {"lr", "weight_decay", *spec.params} for d in drawn)
    with pytest.raises(D2CPError, match="unknown key"):
        spec.values({"no-such-parameter": 1})


def test_a_search_draws_what_the_tier_has():
    """On frozen features D2CP solves its spurious branch and draws no sampling exponent."""
    spec = methods()["d2cp"].spec
    assert set(spec.on("prompts").params) == {"alpha", "eta"}
    solved = {"class_decay", "read_out", "weight_xrm_y"}
    assert set(spec.on("features").params) == {"eta"} | solved
    erm = methods()["erm"].spec
    assert erm.on("features") == erm


@pytest.mark.parametrize("name", ["d2cp", "resample_solved"])
def test_a_refitted_head_is_judged_by_one_that_has_not_seen_validation_images(footing, name):
    found = {}
    for refit in (False, True):
        one = footing("features", "two", class_fit="solved", refit=refit)
        task = one.task(method(name).spec)
        predictor = method(name).fit(task, method(name).spec.on("features").values())
        assert task.passes == 0
        found[refit] = (predictor.logits(task.val), selection_logits(predictor)(task.val))
    assert torch.equal(*found[False]) and torch.equal(found[True][1], found[False][1])
    assert not torch.allclose(found[True][0], found[True][1])


def test_adapters_of_a_comparison_read_features_as_a_run_s_do(footing):
    """In units of the training images: one setting means the same in `compare` and in `run`."""
    one = footing("features", "two")
    features = one.space.read_plain(np.arange(len(one.table)))
    task = one.task(methods()["d2cp"].spec)
    h = task.classifier().features(features[torch.from_numpy(task.train)])
    torch.testing.assert_close(h.mean(0), torch.zeros(h.shape[1]), atol=1e-4, rtol=0)
    torch.testing.assert_close(h.std(0), torch.ones(h.shape[1]), atol=1e-4, rtol=0)
