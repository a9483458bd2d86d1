"""Which labels take the place of the pseudo attribute: mined, or, in an ablation, random or true.

XRM's bits, the sampler, the losses and the selection all read the labels from here: with random or
true labels nothing of them comes from mining.
"""

from __future__ import annotations

from dataclasses import dataclass

from d2cp.core.arrays import Ints
from d2cp.debias.labels import pseudo_labels
from d2cp.pipeline.context import Context
from d2cp.pipeline.discovered import Discovery


@dataclass(frozen=True)
class PseudoAttribute:
    labels: Ints
    values: int


def pseudo_attribute(context: Context, found: Discovery) -> PseudoAttribute:
    """True attributes are read only where `debias.pseudo_source = "true"` asks for them."""
    table, source = context.table, context.config.debias.pseudo_source
    labels = pseudo_labels(
        source,
        mined=found.pseudo,
        true=table.a,
        count=len(table),
        values=found.values,
        seed=context.config.seed,
    )
    return PseudoAttribute(labels, table.n_values if source == "true" else found.values)
