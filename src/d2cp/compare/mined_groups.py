"""Any method that asks for groups, on the mined ones instead: `crm@mined` beside `crm`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from d2cp.compare.contract import Method, Params, Predictor, Spec

if TYPE_CHECKING:
    from d2cp.compare.task import Task

SUFFIX = "@mined"


class OnMinedGroups:
    """The same method; no true attribute is in its task, the pseudo attributes stand for them."""

    def __init__(self, method: Method) -> None:
        self._method = method
        own = method.spec
        self._spec = replace(
            own,
            name=own.name + SUFFIX,
            title=f"{own.title}, mined groups",
            sees_train_groups=False,
            fits_on_val_groups=False,
            needs=own.needs | {"pseudo"},
        )

    @property
    def spec(self) -> Spec:
        return self._spec

    def fit(self, task: Task, params: Params) -> Predictor:
        mined, own = task.pseudo, self._method.spec
        task.values = mined.values
        if own.sees_train_groups:
            task.attribute = mined.attribute[task.train]
        if own.fits_on_val_groups:
            task.val_attribute = mined.attribute[task.val]
        return self._method.fit(task, params)
